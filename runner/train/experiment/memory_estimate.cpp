#include "runner/train/experiment/memory_estimate.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/eval_weights.h"
#include "runner/train/experiment/precision.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/weight_average.h"

namespace runner::train {
namespace {

using components::Dtype;
using components::Port;
using components::loss::LossMemory;
using AutocastType = components::AutocastOptions::Type;
using components::block::Block;
using components::block::BlockMemory;
using components::block::BlockPass;
using components::model::Model;
using components::model::RecomputedBlocks;

constexpr double kProgramBytes = 180e6;  // LibTorch, including oneDNN and OpenMP

/// All live memory, by purpose.
class Ledger {
 public:
  enum Kind { kWeights, kOptimizer, kWeightAverage, kGradients, kBatches, kActivations, kKinds };

  void add(Kind kind, double bytes) {
    held_[kind] += bytes;
    note(0.0);
  }
  void release(Kind kind, double bytes) { held_[kind] -= bytes; }
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

  double at_peak(Kind kind) const { return at_peak_[kind]; }
  const std::string& when() const { return when_; }

 private:
  std::array<double, kKinds> held_{}, at_peak_{};
  double peak_ = 0;
  std::string where_, when_;
};

/// Bytes in the ledger while a reference to them lives: the model of a tensor.
class Bytes {
 public:
  Bytes(Ledger& ledger, Ledger::Kind kind, double bytes) : ledger_(ledger), kind_(kind), bytes_(bytes) {
    ledger_.add(kind_, bytes_);
  }
  ~Bytes() { ledger_.release(kind_, bytes_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

 private:
  Ledger& ledger_;
  Ledger::Kind kind_;
  double bytes_;
};
using Hold = std::shared_ptr<const Bytes>;

/// An activation, by its name in the map.
struct Activation {
  Hold hold;
  std::int64_t number_bytes = 4;
  bool differentiable = false;
};
using Activations = std::map<std::string, Activation>;

double bytes_of(const components::NamedTensors& tensors) {
  double bytes = 0;
  for (const auto& named : tensors) bytes += static_cast<double>(named.tensor.nbytes());
  return bytes;
}

double batch_bytes(const components::DataSignature& data, std::int64_t samples) {
  double bytes = 0;
  for (const Port* port : {&data.input, &data.target}) {
    bytes += elements(*port, samples, data.max_seq_len) * (port->dtype == Dtype::kInt64 ? 8.0 : 4.0);
  }
  return bytes;
}

/// Replays a training step in bytes.
class Rehearsal {
 public:
  explicit Rehearsal(const Experiment& experiment)
      : experiment_(experiment),
        model_(*experiment.model),
        options_(stepper_options(experiment.recipe)),
        autocast_(autocast_of_blocks(experiment.recipe, model_)),
        frees_gradients_(experiment.optimizer->steps_in_backward()) {}

  Ledger run() {
    ledger_.add(Ledger::kWeights, bytes_of(model_.parameters()) + bytes_of(model_.buffers()));
    ledger_.add(Ledger::kOptimizer, static_cast<double>(experiment_.optimizer->state_bytes()));
    ledger_.add(Ledger::kWeightAverage, static_cast<double>(experiment_.weight_average->bytes()));
    const auto& data = experiment_.train_data->signature();
    const double batch = batch_bytes(data, options_.loader.micro_batch_size);
    const double ahead = static_cast<double>(options_.loader.num_workers * options_.loader.prefetch_factor);
    const Bytes batches(ledger_, Ledger::kBatches, batch * (static_cast<double>(options_.accumulation_steps) + ahead));
    // The exchange buffers coexist with the gradients accumulated before the last pass.
    const bool exchanged_apart =
        options_.window_batches > options_.accumulation_steps && options_.accumulation_steps > 1;
    const Bytes buckets(ledger_, Ledger::kGradients, exchanged_apart ? bytes_of(model_.parameters()) : 0.0);
    samples_ = std::min(options_.loader.micro_batch_size, experiment_.train_data->size());
    positions_ = std::max<std::int64_t>(1, data.max_seq_len);
    // The first micro-batch starts without gradients, the second with those of the first.
    for (std::int64_t micro = 0; micro < std::min<std::int64_t>(options_.accumulation_steps, 2); ++micro) {
      forward_backward(first_activations(data));
    }
    move_weights();
    evaluate();
    return std::move(ledger_);
  }

 private:
  /// What the graph keeps of one block, or of a recomputed segment.
  struct Node {
    std::size_t first = 0, count = 1;
    bool recomputed = false;
    Activations inputs;
    BlockPass pass;
    BlockMemory memory;
    std::vector<Hold> holds;
  };

  Hold hold(double bytes) { return std::make_shared<Bytes>(ledger_, Ledger::kActivations, bytes); }

  static Activations first_activations(const components::DataSignature& data) {
    return {{components::kInput, {nullptr, 4, data.input.differentiable}}};
  }

  BlockPass pass_of(std::size_t block, const Activations& activations, bool for_loss) const {
    const bool autocast = autocast_[block] != AutocastType::kNone;
    const BlockPass pass{.samples = samples_, .positions = positions_, .autocast = autocast, .for_loss = for_loss};
    const Block& over = *model_.blocks()[block];
    return pass.over(over, activations.at(over.inputs().front().name).number_bytes);
  }

  BlockMemory memory_of(std::size_t block, const BlockPass& pass) {
    const components::Autocast autocast({.type = autocast_[block]});
    BlockMemory memory = model_.blocks()[block]->memory(pass);
    if (with_steady_weights_.insert(block).second) ledger_.add(Ledger::kWeights, memory.steady_weights);
    return memory;
  }

  /// `caches` gets the low-precision weight copies that a pass without a graph leaves for later passes.
  void forward_alone(std::size_t index, Activations& activations, bool for_loss, std::vector<Hold>* caches) {
    const Block& block = *model_.blocks()[index];
    const BlockMemory memory = memory_of(index, pass_of(index, activations, for_loss));
    const Hold weights = hold(memory.low_weights);
    if (caches != nullptr) caches->push_back(weights);
    ledger_.note(memory.alone + output_bytes(block, memory));
    leave_outputs(block, memory, activations);
  }

  Node forward_with_graph(std::size_t index, Activations& activations, bool for_loss) {
    const Block& block = *model_.blocks()[index];
    Node node;
    node.first = index;
    node.pass = pass_of(index, activations, for_loss);
    node.memory = memory_of(index, node.pass);
    for (const Port& port : block.inputs()) node.inputs[port.name] = activations.at(port.name);
    node.holds.push_back(hold(node.memory.kept + node.memory.low_weights));
    ledger_.note(node.memory.forward + output_bytes(block, node.memory));
    leave_outputs(block, node.memory, activations);
    for (const Port& port : block.outputs()) {
      if (node.memory.keeps_output) node.holds.push_back(activations.at(port.name).hold);
    }
    if (!node.memory.keeps_input) {
      for (auto& [name, input] : node.inputs) input.hold = nullptr;
    }
    return node;
  }

  double output_bytes(const Block& block, const BlockMemory& memory) const {
    if (memory.output_is_input || memory.hidden_features > 0) return 0.0;
    double bytes = 0;
    for (const Port& port : block.outputs()) {
      bytes += elements(port, samples_, positions_) * static_cast<double>(memory.output_bytes);
    }
    return bytes;
  }

  void leave_outputs(const Block& block, const BlockMemory& memory, Activations& activations) {
    if (memory.hidden_features > 0) {
      const double rows = static_cast<double>(samples_) * static_cast<double>(positions_);
      activations[components::kHidden] = {
          hold(rows * memory.hidden_features * static_cast<double>(memory.output_bytes))};
      return;
    }
    for (const Port& port : block.outputs()) {
      const double bytes = elements(port, samples_, positions_) * static_cast<double>(memory.output_bytes);
      const Hold output = memory.output_is_input ? activations.at(block.inputs().front().name).hold : hold(bytes);
      activations[port.name] = {output, memory.output_bytes, true};
    }
  }

  Node forward_recomputed(const RecomputedBlocks& blocks, Activations& activations) {
    Node node;
    node.first = blocks.first;
    node.count = blocks.count;
    node.recomputed = true;
    node.inputs = activations;
    for (std::size_t i = blocks.first; i < blocks.first + blocks.count; ++i) {
      const BlockMemory memory = memory_of(i, pass_of(i, activations, false));
      if (blocks.keep_products) node.holds.push_back(hold(memory.products));
      forward_alone(i, activations, false, nullptr);
    }
    return node;
  }

  void forward_backward(Activations activations) {
    passed_.clear();
    users_.clear();
    for (const auto& block : model_.blocks()) {
      for (const auto& parameter : used_by(*block)) ++users_[parameter.name];
    }
    std::vector<Node> nodes;
    const std::vector<RecomputedBlocks> recomputed = model_.recomputed();
    auto next = recomputed.begin();
    const bool for_loss = !options_.autocast.by_block;
    for (std::size_t i = 0; i < model_.blocks().size();) {
      ledger_.enter("in the forward pass of " + model_.blocks()[i]->name());
      if (next != recomputed.end() && next->first == i) {
        nodes.push_back(forward_recomputed(*next, activations));
        i += (next++)->count;
      } else {
        const bool last = i + 1 == model_.blocks().size();
        nodes.push_back(forward_with_graph(i++, activations, last && for_loss));
      }
    }
    Hold gradient = judge(nodes.back());
    activations.clear();
    while (!nodes.empty()) {
      backward(nodes.back(), gradient);
      nodes.pop_back();
    }
  }

  components::loss::LossPass loss_pass(const BlockMemory& memory, const BlockPass& pass) const {
    const Port& output = model_.blocks().back()->outputs().front();
    const auto classes = static_cast<double>(output.shape.back());
    const bool projects = memory.hidden_features > 0;
    return {.rows = elements(output, samples_, positions_) / classes,
            .classes = classes,
            .features = memory.hidden_features,
            .output_bytes = projects ? pass.product_bytes() : memory.output_bytes,
            .weight_bytes = pass.weight_bytes,
            .autocast = pass.autocast};
  }

  /// The loss with its backward pass; returns the gradient of the output.
  Hold judge(const Node& last) {
    ledger_.enter("in the loss");
    const components::loss::LossPass pass = loss_pass(last.memory, last.pass);
    const LossMemory memory = [&] {
      const components::Autocast autocast({.type = options_.autocast.type});
      return experiment_.loss->memory(pass);
    }();
    ledger_.add(Ledger::kWeights,
                memory.steady_weights - std::exchange(steady_weights_of_loss_, memory.steady_weights));
    const Hold kept = hold(memory.kept);
    ledger_.note(memory.forward);
    ledger_.note(memory.backward);
    loss_has_gradient_ = memory.has_gradient_of_weight;
    if (memory.has_gradient_of_weight) return kept;
    const double hidden = pass.rows * pass.features * static_cast<double>(sizeof(float));
    return hold(hidden > 0 ? hidden : pass.rows * pass.classes * static_cast<double>(pass.output_bytes));
  }

  void backward(Node& node, Hold& gradient) {
    ledger_.enter("in the backward pass of " + model_.blocks()[node.first]->name());
    if (!node.recomputed) return backward_of_block(node, gradient);
    node.holds.clear();  // the second pass reuses the saved outputs
    std::vector<Node> nodes;
    Activations activations = node.inputs;
    for (std::size_t i = node.first; i < node.first + node.count; ++i) {
      nodes.push_back(forward_with_graph(i, activations, false));
    }
    const Hold of_output = gradient;  // held to the end, like the results of the second pass
    for (; !nodes.empty(); nodes.pop_back()) backward_of_block(nodes.back(), gradient);
  }

  /// Its own parameters, and those shared with an earlier block.
  components::NamedTensors used_by(const Block& block) const {
    components::NamedTensors parameters = block.parameters();
    for (const auto& tie : block.ties()) {
      for (const auto& owner : model_.parameters()) {
        if (owner.name == tie.owner) parameters.push_back(owner);
      }
    }
    return parameters;
  }

  void backward_of_block(Node& node, Hold& gradient) {
    const Block& block = *model_.blocks()[node.first];
    double fresh = 0, of_inputs = 0, added = 0;
    const components::NamedTensors parameters = used_by(block);
    for (const auto& parameter : parameters) {
      // The rest of a tied parameter's gradient is added in place, by the rows that were looked up.
      if (!passed_.insert(parameter.name).second) continue;
      const auto bytes = static_cast<double>(parameter.tensor.nbytes());
      (with_gradient_.insert(parameter.name).second ? fresh : added) += bytes;
    }
    for (const Port& port : block.inputs()) {
      const Activation& input = node.inputs.at(port.name);
      if (!input.differentiable) continue;
      of_inputs += elements(port, samples_, positions_) * static_cast<double>(input.number_bytes);
    }
    if (std::exchange(loss_has_gradient_, false)) {  // it passes from the loss to the parameter
      gradient = nullptr;
      ledger_.add(Ledger::kGradients, fresh);
      fresh = added = 0;
    }
    const bool copies = std::exchange(gradient_is_spread_, node.memory.spread_gradient) && node.memory.products > 0;
    const double copy =
        copies ? elements(block.outputs().front(), samples_, positions_) * static_cast<double>(node.memory.output_bytes)
               : 0.0;
    ledger_.note(node.memory.backward + copy + (fresh + added) / 2);
    const Hold of_input = hold(of_inputs);
    ledger_.note(fresh + added + copy + node.memory.backward_end);
    node.holds.clear();
    ledger_.add(Ledger::kGradients, fresh);
    gradient = of_input;
    if (frees_gradients_) free_gradients(parameters);
  }

  /// For the parameters that no earlier block needs: each is updated, then its gradient is freed.
  void free_gradients(const components::NamedTensors& parameters) {
    for (const auto& parameter : parameters) {
      if (--users_.at(parameter.name) > 0) continue;
      const auto bytes = static_cast<std::int64_t>(parameter.tensor.nbytes());
      ledger_.note(static_cast<double>(experiment_.optimizer->step_bytes(bytes)));
      ledger_.release(Ledger::kGradients, static_cast<double>(bytes));
    }
  }

  /// The optimizer; bfloat16 weights have twins with gradients meanwhile.
  void move_weights() {
    if (frees_gradients_) return;
    ledger_.enter("in the optimizer");
    double twins = 0, step = 0;
    for (const auto& parameter : model_.parameters()) {
      const std::int64_t bytes = parameter.tensor.numel() * static_cast<std::int64_t>(sizeof(float));
      step = std::max(step, static_cast<double>(experiment_.optimizer->step_bytes(bytes)));
    }
    if (experiment_.rounded_weights) {
      for (const auto& parameter : model_.parameters()) {
        if (parameter.tensor.scalar_type() == at::kBFloat16) {
          twins += 2.0 * sizeof(float) * static_cast<double>(parameter.tensor.numel());
        }
      }
    }
    ledger_.note(twins + step);
  }

  void evaluate() {
    const auto& config = experiment_.recipe.eval;
    model_.set_training(false);
    double trained = experiment_.optimizer->has_judged_weights() ? bytes_of(model_.parameters()) : 0.0;
    if (experiment_.weight_average->averages()) trained += bytes_of(model_.parameters()) + bytes_of(model_.buffers());
    const Hold beside = hold(trained);  // while the evaluation weights are in their place
    for (const NamedDataset& set : experiment_.eval_data) {
      ledger_.enter("in the evaluation of " + set.name);
      const auto& data = set.data->signature();
      samples_ = std::min(config.micro_batch_size.value_or(options_.loader.micro_batch_size), set.data->size());
      positions_ = std::max<std::int64_t>(1, data.max_seq_len);
      const Bytes batch(ledger_, Ledger::kBatches, batch_bytes(data, samples_));
      Activations activations = first_activations(data);
      std::vector<Hold> caches;
      BlockPass pass;
      BlockMemory memory;
      for (std::size_t i = 0; i < model_.blocks().size(); ++i) {
        pass = pass_of(i, activations, false);
        memory = memory_of(i, pass);
        forward_alone(i, activations, false, &caches);
      }
      caches.clear();
      const LossMemory loss = experiment_.loss->memory(loss_pass(memory, pass));
      ledger_.note(loss.kept + loss.forward);
    }
    model_.set_training(true);
  }

  const Experiment& experiment_;
  Model& model_;
  const StepperOptions options_;
  const std::vector<AutocastType> autocast_;  // of the blocks
  const bool frees_gradients_;
  Ledger ledger_;
  std::int64_t samples_ = 1, positions_ = 1;
  std::set<std::string> with_gradient_, passed_;  // parameters: since the step began, in this backward pass
  std::map<std::string, int> users_;              // blocks that still contribute to a parameter's gradient in this pass
  std::set<std::size_t> with_steady_weights_;     // blocks
  double steady_weights_of_loss_ = 0;
  bool loss_has_gradient_ = false;
  bool gradient_is_spread_ = false;  ///< gradient that arrives at the next block
};

}  // namespace

MemoryEstimate estimate_memory(const Experiment& experiment) {
  const Ledger ledger = Rehearsal(experiment).run();
  MemoryEstimate estimate;
  estimate.weights = ledger.at_peak(Ledger::kWeights);
  estimate.optimizer = ledger.at_peak(Ledger::kOptimizer);
  estimate.weight_average = ledger.at_peak(Ledger::kWeightAverage);
  estimate.gradients = ledger.at_peak(Ledger::kGradients);
  estimate.batches = ledger.at_peak(Ledger::kBatches);
  estimate.activations = ledger.at_peak(Ledger::kActivations);
  estimate.when = ledger.when();
  estimate.data_sets = static_cast<double>(experiment.train_data->held_bytes());
  for (const NamedDataset& set : experiment.eval_data) {
    estimate.data_sets += static_cast<double>(set.data->held_bytes());
  }
  const auto& saves = experiment.recipe.checkpoint;
  if (saves.async_save && (saves.save_steps || saves.save_best)) {
    estimate.copies =
        static_cast<double>(checkpoint::estimate_bytes(*experiment.model, EvalWeights::saved_tensors(experiment)));
  }
  estimate.program = kProgramBytes;
  return estimate;
}

}  // namespace runner::train
