#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "components/callback/callback.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "generated/callback/sample_generation.h"
#include "runner/core/units.h"

// B: texts written at once   T: positions so far, at most the data set's max_seq_len   V: vocabulary

namespace components::callback::sample_generation {
namespace {

using runner::core::Interval;
using runner::core::Node;

/// Temperatures below this are 0: float32 has no reciprocal of them, and sampling is greedy long before.
constexpr double kColdest = 1e-30;

/// Puts the blocks into evaluation mode, so that dropout uses no random numbers of the training, and back.
class EvaluationMode {
 public:
  explicit EvaluationMode(const model::Model& model) : model_(model) { set_training(false); }
  ~EvaluationMode() { set_training(true); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  void set_training(bool training) {
    for (const auto& block : model_.blocks()) block->set_training(training);
  }
  const model::Model& model_;
};

class SampleGeneration final : public Callback {
 public:
  SampleGeneration(const Config& config, std::int64_t max_seq_len) : config_(config), max_seq_len_(max_seq_len) {}

  // The signature distinguishes ids from values; only the data set knows whether its ids are text.
  void check_compatibility(const model::Model& model, const data::Dataset& train_data, const Node& block,
                           runner::core::Diagnostics& diagnostics) const override {
    for (const TensorSpec& port : model.inputs()) {
      if (port.name == kInput || port.name == kAttentionMask || port.name == kPositions) continue;
      diagnostics.error(
          block.location(),
          "sample_generation has a text for the model to continue, but it reads \"" + port.name + "\" as well",
          "remove it");
    }
    if (!train_data.encode(config_.prompt).empty()) return;
    diagnostics.error(block.location(), "sample_generation continues text, but the ids of data.train are not text",
                      "remove it, or train on data such as {type: text}");
  }

  bool acts_on_step(const Context& context) const override { return due(context) > done_; }

  void on_step_end(Context& context) override {
    if (!acts_on_step(context)) return;
    done_ = due(context);
    write(context);
  }

  void on_train_end(Context& context) override {
    if (last_step_ != context.step()) write(context);
  }

  void save_state(runner::core::StateWriter& writer) const override {
    writer.value("done", Node::integer(done_));
    writer.value("last_step", Node::integer(last_step_));
  }

  void load_state(const runner::core::StateReader& reader) override {
    done_ = reader.value("done").as_integer();
    last_step_ = reader.value("last_step").as_integer();
  }

 private:
  /// Number of texts that are due by now.
  std::int64_t due(const Context& context) const {
    if (!config_.every) return 0;
    const double now =
        config_.every->unit == Interval::Unit::kEpochs ? context.epoch() : static_cast<double>(context.step());
    // A step at a multiple may miss it by a rounding error of the epoch.
    return static_cast<std::int64_t>(std::floor(now / config_.every->amount + 1e-9));
  }

  void write(Context& context) {
    last_step_ = context.step();
    const c10::NoGradGuard no_grad;
    const EvaluationMode evaluation(context.model());
    const std::vector<std::int64_t> prompt = context.train_data().encode(config_.prompt);
    at::Tensor ids_BT = at::tensor(prompt, at::kLong).unsqueeze(0).repeat({config_.num_samples, 1});
    // Depends on seed and step only: a resumed run writes the same as an uninterrupted one.
    at::Generator generator = at::detail::createCPUGenerator(context.seed() * 0x9E3779B97F4A7C15ULL +
                                                             static_cast<std::uint64_t>(context.step()));
    for (std::int64_t i = 0; i < config_.max_new_tokens; ++i) {
      const at::Tensor next_B1 = next(context.model(), ids_BT, generator);
      if (!next_B1.defined()) {
        context.log_text("sample", "(the model's outputs are not finite)");
        return;
      }
      ids_BT = at::cat({ids_BT, next_B1}, 1);
    }
    for (std::int64_t b = 0; b < config_.num_samples; ++b) {
      const at::Tensor ids_T = ids_BT[b].contiguous();
      const std::span<const std::int64_t> ids(ids_T.const_data_ptr<std::int64_t>(),
                                              static_cast<std::size_t>(ids_T.numel()));
      context.log_text(config_.num_samples == 1 ? "sample" : "sample/" + std::to_string(b + 1),
                       context.train_data().decode(ids));
    }
  }

  /// One more id for each text, [B, 1]; undefined when the logits are not finite.
  at::Tensor next(const model::Model& model, const at::Tensor& ids_BT, at::Generator& generator) const {
    const std::int64_t begin = std::max<std::int64_t>(ids_BT.size(1) - max_seq_len_, 0);
    TensorMap activations;
    const at::Device device = model.parameters().front().tensor.device();
    activations.set(kInput, ids_BT.slice(1, begin).contiguous().to(device));
    activations.set(kAttentionMask, at::ones_like(activations.at(kInput), at::kBool));  // all are real
    activations.set(kPositions, at::arange(activations.at(kInput).size(1), at::TensorOptions(at::kLong).device(device))
                                    .expand_as(activations.at(kInput)));
    model.forward(activations);
    at::Tensor logits_BV = activations.at(kOutput);
    if (logits_BV.dim() == 3) logits_BV = logits_BV.select(1, -1);
    logits_BV = logits_BV.cpu().to(at::kFloat);
    if (!at::isfinite(logits_BV).all().item<bool>()) return {};
    if (config_.temperature < kColdest) return logits_BV.argmax(1, /*keepdim=*/true);
    if (config_.top_k && *config_.top_k < logits_BV.size(1)) {
      const at::Tensor least_B1 = std::get<0>(logits_BV.topk(*config_.top_k, 1)).slice(1, *config_.top_k - 1);
      logits_BV = logits_BV.masked_fill(logits_BV < least_B1, -std::numeric_limits<double>::infinity());
    }
    // Subtracting the largest first keeps a very low temperature from overflowing to infinity.
    const at::Tensor shifted_BV = logits_BV - logits_BV.amax(1, /*keepdim=*/true);
    return at::multinomial(at::softmax(shifted_BV / config_.temperature, 1), 1, /*replacement=*/false, generator);
  }

  Config config_;
  std::int64_t max_seq_len_;
  std::int64_t done_ = 0;        ///< multiples of the interval that have passed
  std::int64_t last_step_ = -1;  ///< when the last text was written
};

}  // namespace

std::shared_ptr<Callback> make(const Config& config, const Inputs& inputs) {
  const TensorSpec* input = inputs.data.find(kInput);
  if (input == nullptr || input->vocab_size == 0) {
    inputs.diagnostics.error(inputs.block.location(),
                             "sample_generation continues text, but the training set is not text",
                             "remove it, or train on data such as {type: text}");
    return nullptr;
  }
  if (config.every) {
    const Interval::Unit unit = config.every->unit;
    const Node* every = inputs.block.find("every");
    if (unit != Interval::Unit::kSteps && unit != Interval::Unit::kEpochs) {
      inputs.diagnostics.error(every->location(),
                               "every is " + every->scalar_text() +
                                   ", but samples are written at intervals of "
                                   "steps or epochs",
                               "write an integer for steps, or `1ep`");
      return nullptr;
    }
    if (config.every->amount <= 0) {
      inputs.diagnostics.error(every->location(), "every is " + every->scalar_text() + ", and must be above 0");
      return nullptr;
    }
  }
  return std::make_shared<SampleGeneration>(config, input->max_length);
}

}  // namespace components::callback::sample_generation
