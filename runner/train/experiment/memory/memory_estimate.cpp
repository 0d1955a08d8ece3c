#include "runner/train/experiment/memory/memory_estimate.h"
#include "runner/train/experiment/gradient_strategy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "components/block/quantized.h"
#include "components/tensor/autocast.h"
#include "components/tensor/meta_pass.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "generated/section/checkpoint.h"
#include "generated/section/eval.h"
#include "generated/section/launch.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/distributed/bucket_assignment.h"
#include "runner/train/data/sample_lengths.h"
#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/eval_weights.h"
#include "runner/train/experiment/memory/tensor_size.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/experiment/weight_average.h"

namespace runner::train {
namespace {

using components::TensorSpec;
using components::block::Block;
using components::model::Model;

constexpr double kProgramBytes = 180e6;  // LibTorch, including oneDNN and OpenMP

/// All live memory, by purpose.
class Ledger {
 public:
  enum Kind { kWeights, kOptimizer, kWeightAverage, kGradients, kBatches, kActivations, kKinds };

  /// More, or with a negative number less.
  void change(Kind kind, double bytes) {
    held_[kind] += bytes;
    note(0.0);
  }
  void move(Kind from, Kind to, double bytes) {
    held_[from] -= bytes;
    held_[to] += bytes;
  }
  /// What is left of the activations between two steps are copies of weights.
  void settle() {
    const double left = held_[kActivations];
    move(kActivations, kWeights, left);
    at_peak_[kActivations] -= left;
    at_peak_[kWeights] += left;
  }
  /// Allocates and frees this many bytes.
  void note(double bytes) {
    const double now = std::accumulate(held_.begin(), held_.end(), bytes);
    if (now <= peak_) return;
    peak_ = now;
    at_peak_ = held_;
    at_peak_[kActivations] += bytes;
    when_ = where_;
  }
  /// The phase that the next changes count for.
  void enter(std::string where) { where_ = std::move(where); }

  const std::string& where() const { return where_; }
  double at_peak(Kind kind) const { return at_peak_[kind]; }
  const std::string& when() const { return when_; }

 private:
  std::array<double, kKinds> held_{}, at_peak_{};
  double peak_ = 0;
  std::string where_, when_;
};

/// Some bytes in the ledger, as long as it lives.
class Bytes {
 public:
  Bytes(Ledger& ledger, Ledger::Kind kind, double bytes) : ledger_(ledger), kind_(kind), bytes_(bytes) {
    ledger_.change(kind_, bytes_);
  }
  ~Bytes() { ledger_.change(kind_, -bytes_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

 private:
  Ledger& ledger_;
  Ledger::Kind kind_;
  double bytes_;
};

double bytes_of(const components::NamedTensors& tensors) {
  double bytes = 0;
  for (const auto& named : tensors) bytes += static_cast<double>(named.tensor.nbytes());
  return bytes;
}

/// Bytes of the buckets that gradients of the whole model are exchanged in.
std::vector<std::int64_t> buckets_of(const Model& model, std::int64_t bucket_bytes) {
  std::vector<at::Tensor> backwards;
  for (const auto& parameter : model.trained_parameters()) backwards.insert(backwards.begin(), parameter.tensor);
  std::vector<std::int64_t> sizes = distributed::BucketAssignment(backwards, bucket_bytes).floats;
  for (std::int64_t& size : sizes) size *= static_cast<std::int64_t>(sizeof(float));
  return sizes;
}

/// Of the bucket that is on its way and the next one, which fills.
double largest_pair(const std::vector<double>& buckets) {
  double most = buckets.empty() ? 0.0 : buckets.front();
  for (std::size_t i = 1; i < buckets.size(); ++i) most = std::max(most, buckets[i - 1] + buckets[i]);
  return most;
}

/// The same where what comes of a bucket lies beside what is sent, and a process keeps `share` of it. The last bucket
/// goes when the passes are over.
double largest_exchange(const std::vector<double>& buckets, double share) {
  double most = 0;
  for (std::size_t i = 0; i + 1 < buckets.size(); ++i) {
    const double next = i + 2 < buckets.size() ? buckets[i + 1] : 0.0;
    most = std::max(most, (2.0 - share) * buckets[i] + (1.0 - share) * next);
  }
  return most;
}

double batch_bytes(const components::BatchSpec& data, std::int64_t samples) {
  double bytes = 0;
  for (const TensorSpec& port : data.tensors) {
    bytes += elements(port, samples) * static_cast<double>(element_size(port.dtype));
  }
  return bytes;
}

/// What batches of a data set are at most.
components::BatchSpec largest_batch(const Experiment& experiment, const std::string& name,
                                    const components::data::Dataset& data) {
  const core::Node* multiple = experiment.recipe.root.at_path("data." + name + ".pad_to_multiple_of");
  const bool given = multiple != nullptr && multiple->is_integer();
  return longest_batch(data, given ? multiple->as_integer() : 1);
}

/// A tensor on the meta device as a batch has it.
at::Tensor on_meta(const TensorSpec& port, std::int64_t samples, std::int64_t length) {
  const std::int64_t positions = std::max<std::int64_t>(1, length);
  std::vector<std::int64_t> shape;
  for (const std::int64_t size : port.shape) {
    shape.push_back(size == components::kBatch ? samples : size == components::kTime ? positions : size);
  }
  return at::empty(shape, at::TensorOptions().device(at::kMeta).dtype(scalar_type(port.dtype)));
}

components::TensorMap batch_on_meta(const components::BatchSpec& data, std::int64_t samples) {
  components::TensorMap batch;
  for (const TensorSpec& port : data.tensors) {
    // The length that kPositions has is that of what it counts, not of a row.
    const std::int64_t length = port.name == components::kPositions ? data.max_length() : port.max_length;
    batch.set(port.name, on_meta(port, samples, length));
  }
  return batch;
}

/// What a MetaPass measures.
StepperOptions on_the_cpu(StepperOptions options) {
  options.autocast.device = c10::kCPU;
  return options;
}

/// A training, step by step: its passes are made on the meta device, the rest is added up.
class Rehearsal {
 public:
  explicit Rehearsal(const Experiment& experiment)
      : experiment_(experiment),
        model_(*experiment.model),
        options_(on_the_cpu(stepper_options(experiment.recipe))),
        on_gpu_(!device_of(experiment.recipe).is_cpu()),
        train_batch_(largest_batch(experiment, "train", *experiment.train_data)),
        batch_bytes_(batch_bytes(train_batch_, options_.loader.micro_batch_size)),
        frees_gradients_(experiment.optimizer->steps_in_backward()),
        self_(std::make_shared<Rehearsal*>(this)) {
    watch_blocks();
    if (experiment.strategy->keeps_buckets()) {
      for (const std::int64_t bytes : buckets_of(model_, options_.ddp.bucket_bytes)) bucket_bytes_ += in_memory(bytes);
    }
    for (const auto& parameter : model_.trained_parameters()) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, std::make_unique<GradientHook>(*this));
    }
  }
  ~Rehearsal() {
    *self_ = nullptr;
    for (const auto& parameter : model_.trained_parameters()) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
      at::Tensor(parameter.tensor).mutable_grad().reset();
    }
  }
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  /// Without activations where the reason is given why they cannot be told.
  Ledger run(std::int64_t reference_bytes, std::string& unknown) {
    ledger_.change(Ledger::kWeights, static_cast<double>(reference_bytes));
    const std::optional<HeldBytes> held = experiment_.strategy->held_bytes();
    const double parameters = in_memory(model_.parameters());
    gathered_later_ = held ? std::max(0.0, parameters - static_cast<double>(held->weights)) : 0.0;
    ledger_.change(Ledger::kWeights, (held ? static_cast<double>(held->weights) : parameters) +
                                         bytes_of(model_.buffers()) +
                                         static_cast<double>(components::block::quantized_bytes(model_.blocks())));
    // The optimizer's tensors are like those that it moves.
    const components::NamedTensors moved = experiment_.strategy->optimizer_tensors();
    const double exact = bytes_of(moved), lost = exact > 0 ? in_memory(moved) / exact : 1.0;
    ledger_.change(Ledger::kOptimizer, lost * static_cast<double>(experiment_.optimizer->state_bytes()));
    ledger_.change(Ledger::kWeightAverage, static_cast<double>(experiment_.weight_average->bytes()));
    std::optional<Bytes> batches(std::in_place, ledger_, Ledger::kBatches, batch_bytes_ * batches_held());
    const double whole = in_memory(model_.trained_parameters());
    std::vector<double> sizes;
    for (const std::int64_t bytes : buckets_of(model_, options_.ddp.bucket_bytes)) sizes.push_back(in_memory(bytes));
    const bool streams = frees_gradients_ && experiment_.recipe.launch->num_processes > 1;
    const bool divides = !held && !streams && keeps_rows();
    const double share = whole > 0 ? kept_rows() / whole : 1.0;
    if (divides) dividing_ = largest_exchange(sizes, share);
    const double in_flight = held ? static_cast<double>(held->exchange) : streams ? largest_pair(sizes) : 0.0;
    std::optional<Bytes> on_their_way(std::in_place, ledger_, Ledger::kGradients, in_flight);
    const Bytes buckets(ledger_, Ledger::kGradients, bucket_bytes_);
    const std::int64_t samples = std::min(options_.loader.micro_batch_size, experiment_.train_data->size());
    experiment_.strategy->set_types_of_pass(true);
    try {
      // The first micro-batch starts without gradients, the second with those of the first.
      const std::int64_t passes = std::min<std::int64_t>(options_.accumulation_steps, 2);
      for (std::int64_t micro = 0; micro < passes; ++micro) {
        const bool is_last = micro + 1 == passes;
        exchanges_ = bucket_bytes_ > 0 && (is_last || options_.ddp.sync_each_batch);
        // With its first gradient the sums of the passes before it leave the buckets.
        set_aside_ = exchanges_ && options_.ddp.sync_each_batch && micro > 0 ? bucket_bytes_ : 0.0;
        forward_backward(batch_on_meta(train_batch_, samples));
        divided_.reset();
      }
      sums_.reset();
      on_their_way.reset();
      if (held) ledger_.note(static_cast<double>(held->last));
      if (divides && !sizes.empty()) ledger_.note((2.0 - share) * sizes.back());
      if (held && held->summed > 0) ledger_.change(Ledger::kGradients, static_cast<double>(held->summed) - whole);
      ledger_.settle();
      if (on_gpu_) batches.reset();  // the passes have freed it
      move_weights();
      evaluate();
    } catch (const c10::Error& error) {
      unknown = error.what_without_backtrace();
      unknown = ledger_.where() + ": " + unknown.substr(0, std::min(unknown.find('\n'), unknown.find(". ")));
    }
    experiment_.strategy->set_types_of_pass(false);
    return std::move(ledger_);
  }

  /// Bytes of the micro-batches that wait in the memory of the CPU for their turn on a GPU.
  double waiting_bytes() const { return on_gpu_ ? batch_bytes_ * batches_read() : 0.0; }

 private:
  /// Micro-batches of a step, and those that the loader reads ahead.
  double batches_read() const {
    return static_cast<double>(options_.accumulation_steps +
                               options_.loader.num_workers * options_.loader.prefetch_factor);
  }
  /// Those on the device that trains. A GPU gets each with its forward pass.
  double batches_held() const { return on_gpu_ ? 1.0 : batches_read(); }

  class GradientHook final : public torch::autograd::PostAccumulateGradHook {
   public:
    explicit GradientHook(Rehearsal& rehearsal) : rehearsal_(rehearsal) {}
    void operator()(const at::Tensor& parameter) override { rehearsal_.note_gradient(parameter); }

   private:
    Rehearsal& rehearsal_;
  };

  components::MetaPass::Observer observe() {
    return [this](std::int64_t bytes) { ledger_.change(Ledger::kActivations, in_memory(bytes)); };
  }

  /// What is held on the device for a tensor of that many bytes; negative ones are given back.
  double in_memory(std::int64_t bytes) const {
    const std::int64_t size = std::abs(bytes), held = on_gpu_ ? size : tensor_memory_of(size);
    return static_cast<double>(bytes < 0 ? -held : held);
  }
  double in_memory(const components::NamedTensors& tensors) const {
    double bytes = 0;
    for (const auto& named : tensors) bytes += in_memory(static_cast<std::int64_t>(named.tensor.nbytes()));
    return bytes;
  }

  /// The model keeps its hooks for good: they know when this is gone.
  void watch_blocks() {
    const auto enter = [self = self_](const std::string& block) {
      if (*self != nullptr && !(*self)->pass_.empty()) (*self)->ledger_.enter((*self)->pass_ + block);
    };
    const auto watch = [enter](const Block& block, const at::Tensor* output) {
      if (output == nullptr || !output->requires_grad()) return;
      output->register_hook([enter, name = block.name()](const at::Tensor&) { enter(name); });
    };
    model_.add_hooks({.before_forward = [enter](const Block& block, components::TensorMap&) { enter(block.name()); },
                      .after_forward =
                          [watch](const Block& block, components::TensorMap& activations) {
                            for (const TensorSpec& port : block.outputs()) watch(block, activations.find(port.name));
                            watch(block, activations.find(components::kHidden));
                          }});
  }

  /// What Stepper does with a micro-batch.
  void forward_backward(components::TensorMap batch) {
    const components::MetaPass pass(observe(), on_gpu_);
    at::Tensor sum = forward(std::move(batch));
    const at::Tensor weight = at::scalar_tensor(1.0, sum.options().requires_grad(false));
    pass_ = "in the backward pass of ";
    torch::autograd::backward({sum}, {weight});
  }

  at::Tensor forward(components::TensorMap activations) {
    const components::Autocast autocast(options_.autocast);
    pass_ = "in the forward pass of ";
    options_.autocast.by_block ? model_.forward(activations) : model_.forward_for_loss(activations);
    ledger_.enter("in the loss");
    return experiment_.loss->sum(activations);
  }

  /// Whether each process keeps its rows of the gradients alone; whole ones are on their way.
  bool keeps_rows() const {
    const auto trained = model_.trained_parameters();
    return std::any_of(trained.begin(), trained.end(), [this](const auto& parameter) {
      return experiment_.strategy->held_gradient_bytes(parameter.tensor) <
             static_cast<std::int64_t>(parameter.tensor.nbytes());
    });
  }

  /// Bytes of the gradients that this process keeps.
  double kept_rows() const {
    double bytes = 0;
    for (const auto& parameter : model_.trained_parameters())
      bytes += in_memory(experiment_.strategy->held_gradient_bytes(parameter.tensor));
    return bytes;
  }

  /// A parameter has its whole gradient; where the optimizer frees it, the parameter moves and the gradient is gone.
  void note_gradient(const at::Tensor& parameter) {
    const double bytes = in_memory(static_cast<std::int64_t>(parameter.nbytes()));
    const double held = in_memory(experiment_.strategy->held_gradient_bytes(parameter));
    if (dividing_ > 0 && !divided_) divided_.emplace(ledger_, Ledger::kGradients, dividing_);
    if (set_aside_ > 0) sums_.emplace(ledger_, Ledger::kGradients, std::exchange(set_aside_, 0.0));
    if (exchanges_) {
      if (with_gradient_.erase(parameter.unsafeGetTensorImpl()) > 0)
        ledger_.move(Ledger::kGradients, Ledger::kActivations, bytes);  // which the pass frees
      at::Tensor(parameter).mutable_grad().reset();
    } else if (frees_gradients_) {
      ledger_.note(step_bytes(static_cast<std::int64_t>(parameter.nbytes())));
      at::Tensor(parameter).mutable_grad().reset();
    } else if (held < bytes) {
      at::Tensor(parameter).mutable_grad().reset();
      if (with_gradient_.insert(parameter.unsafeGetTensorImpl()).second) ledger_.change(Ledger::kGradients, held);
    } else if (with_gradient_.insert(parameter.unsafeGetTensorImpl()).second) {
      ledger_.move(Ledger::kActivations, Ledger::kGradients, bytes);
      ledger_.change(Ledger::kGradients, std::max(0.0, held - bytes));
    }
  }

  double step_bytes(std::int64_t parameter_bytes) const {
    const auto& optimizer = *experiment_.optimizer;
    return static_cast<double>(on_gpu_ ? optimizer.step_bytes(parameter_bytes)
                                       : optimizer.cpu_step_bytes(parameter_bytes));
  }

  /// The optimizer; bfloat16 weights have twins with gradients meanwhile.
  void move_weights() {
    if (frees_gradients_) return;
    ledger_.enter("in the optimizer");
    double twins = 0, step = 0;
    for (const auto& parameter : model_.trained_parameters()) {
      const std::int64_t bytes = parameter.tensor.numel() * static_cast<std::int64_t>(sizeof(float));
      step = std::max(step, step_bytes(bytes));
    }
    if (experiment_.master_weights) {
      for (const auto& parameter : experiment_.strategy->optimizer_tensors()) {
        if (parameter.tensor.scalar_type() == at::kBFloat16) {
          twins += 2.0 * sizeof(float) * static_cast<double>(parameter.tensor.numel());
        }
      }
    }
    // What the optimizer has of a bucket is of the weight's type.
    for (const auto& parameter : model_.trained_parameters()) {
      if (bucket_bytes_ > 0 && parameter.tensor.scalar_type() != at::kFloat)
        ledger_.change(Ledger::kGradients, static_cast<double>(parameter.tensor.nbytes()));
    }
    double sharing = 0;
    for (const std::int64_t bytes : experiment_.strategy->sharing_bytes()) sharing += in_memory(bytes);
    ledger_.note(std::max(twins + step, sharing));
  }

  void evaluate() {
    const at::NoGradGuard no_grad;
    model_.set_training(false);
    const double own = bytes_of(experiment_.strategy->optimizer_tensors());
    double trained = experiment_.optimizer->has_eval_weights() ? own : 0.0;
    if (experiment_.weight_average->averages()) trained += own + bytes_of(model_.buffers());
    // Where the first process reads for all, and for callbacks, the weights are gathered first.
    const bool gathers = options_.loader.rank_0_reads || !experiment_.callbacks.empty();
    const Bytes gathered(ledger_, Ledger::kWeights, gathers && !experiment_.eval_data.empty() ? gathered_later_ : 0.0);
    const Bytes beside(ledger_, Ledger::kActivations, trained);  // while the evaluation weights are in their place
    for (const NamedDataset& set : experiment_.eval_data) {
      const components::BatchSpec data = largest_batch(experiment_, set.name, *set.data);
      const auto& most = experiment_.recipe.eval->max_batches;
      const std::int64_t evaluated = most ? counted_samples(experiment_.recipe, *most) : set.data->size();
      const std::int64_t samples = std::min({eval_micro_batch(experiment_.recipe), evaluated, set.data->size()});
      const Bytes held(ledger_, Ledger::kBatches, batch_bytes(data, samples));
      evaluate_batch(set.name, batch_on_meta(data, samples));
    }
    model_.set_training(true);
  }

  void evaluate_batch(const std::string& name, components::TensorMap activations) {
    const components::MetaPass pass(observe(), on_gpu_);
    pass_.clear();
    ledger_.enter("in the evaluation of " + name);
    {
      const components::Autocast autocast(options_.autocast);
      model_.forward(activations);
    }
    experiment_.loss->sum(activations);
    activations.clear();
  }

  const Experiment& experiment_;
  Model& model_;
  const StepperOptions options_;
  const bool on_gpu_;
  const components::BatchSpec train_batch_;
  const double batch_bytes_;  ///< of one micro-batch
  const bool frees_gradients_;
  const std::shared_ptr<Rehearsal*> self_;
  double gathered_later_ = 0.0;  ///< bytes of weights that are not there within a step
  Ledger ledger_;
  double bucket_bytes_ = 0.0;     ///< of whole gradients that are exchanged
  bool exchanges_ = false;        ///< a pass copies its gradients into buckets
  double set_aside_ = 0.0;        ///< bytes of sums that the next gradient makes room for
  std::optional<Bytes> sums_;     ///< of the passes before
  double dividing_ = 0.0;         ///< bytes of whole gradients on their way while a process keeps its rows alone
  std::optional<Bytes> divided_;  ///< these, from the first gradient of a pass to its end
  std::set<const c10::TensorImpl*> with_gradient_;  ///< parameters
  std::string pass_;  ///< `in the backward pass of `, before a block's name; empty where it is not said
};

/// What is saved from a GPU is copied to the memory of the CPU in any case.
bool copies_checkpoints(const resolve::Recipe& recipe) {
  const auto& saves = *recipe.checkpoint;
  const bool between_steps = saves.save_steps || saves.save_best;
  return device_of(recipe).is_cpu() ? saves.async_save && between_steps : between_steps || saves.save_at_end;
}

}  // namespace

MemoryEstimate estimate_memory(const Experiment& experiment, std::int64_t reference_bytes) {
  MemoryEstimate estimate;
  Rehearsal rehearsal(experiment);
  const Ledger ledger = rehearsal.run(reference_bytes, estimate.unknown);
  estimate.weights = ledger.at_peak(Ledger::kWeights);
  estimate.optimizer = ledger.at_peak(Ledger::kOptimizer);
  estimate.weight_average = ledger.at_peak(Ledger::kWeightAverage);
  estimate.gradients = ledger.at_peak(Ledger::kGradients);
  estimate.batches = ledger.at_peak(Ledger::kBatches);
  estimate.activations = ledger.at_peak(Ledger::kActivations);
  estimate.when = ledger.when();
  estimate.waiting_batches = rehearsal.waiting_bytes();
  estimate.data_sets = static_cast<double>(experiment.train_data->memory_bytes());
  for (const NamedDataset& set : experiment.eval_data) {
    estimate.data_sets += static_cast<double>(set.data->memory_bytes());
  }
  if (copies_checkpoints(experiment.recipe)) {
    const std::int64_t all =
        checkpoint::estimate_bytes(*experiment.model, EvalWeights::saved_beside(experiment), experiment.base.get());
    estimate.copies = static_cast<double>(all) / experiment.strategy->processes_that_save();
  }
  estimate.program = kProgramBytes;
  return estimate;
}

}  // namespace runner::train
