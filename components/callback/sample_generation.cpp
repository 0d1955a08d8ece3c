#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "components/callback/callback.h"
#include "components/generation/generator.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "generated/callback/sample_generation.h"
#include "runner/core/units.h"

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

/// Prompts with what is generated behind them.
class Texts final : public generation::Receiver {
 public:
  explicit Texts(std::vector<std::vector<std::int32_t>> prompts) : of(std::move(prompts)) {}

  bool token(std::size_t sequence, std::int32_t id, float) override {
    of[sequence].push_back(id);
    return true;
  }
  void ended(std::size_t, generation::End how) override { finite = finite && how != generation::End::kNotFinite; }

  std::vector<std::vector<std::int32_t>> of;
  bool finite = true;
};

class SampleGeneration final : public Callback {
 public:
  SampleGeneration(const Config& config, std::int64_t max_seq_len) : config_(config), max_seq_len_(max_seq_len) {}

  // The signature distinguishes ids from values; only the data set knows whether its ids are text.
  void check_compatibility(const model::Model& model, const data::Dataset& train_data, const Node& block,
                           runner::core::Diagnostics& diagnostics) const override {
    if (!model.continues_text()) {
      return diagnostics.error(block.location(),
                               "sample_generation needs logits of the next token, which the model does not return",
                               "remove it");
    }
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
    const EvaluationMode evaluation(context.model());
    const std::vector<std::int64_t> ids = context.train_data().encode(config_.prompt);
    const std::vector<std::vector<std::int32_t>> prompts(static_cast<std::size_t>(config_.num_samples),
                                                         {ids.begin(), ids.end()});
    Texts texts(prompts);
    generation::Generator(context.model(), options(context)).generate(prompts, texts);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const std::vector<std::int64_t> text(texts.of[i].begin(), texts.of[i].end());
      context.log_text(prompts.size() == 1 ? "sample" : "sample/" + std::to_string(i + 1),
                       texts.finite ? context.train_data().decode(text) : "(the model's outputs are not finite)");
      if (!texts.finite) return;
    }
  }

  generation::Options options(const Context& context) const {
    generation::Options options;
    options.sampling = {.do_sample = config_.temperature >= kColdest,
                        .temperature = config_.temperature,
                        .top_k = config_.top_k.value_or(0)};
    options.max_new_tokens = config_.max_new_tokens;
    // Depends on seed and step only: a resumed run writes the same as an uninterrupted one.
    options.seed = context.seed() * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(context.step());
    options.batch = config_.num_samples;
    options.positions = max_seq_len_;
    options.slides =
        static_cast<std::int64_t>(context.train_data().encode(config_.prompt).size()) + config_.max_new_tokens >
        max_seq_len_;
    return options;
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
  // A row of a pair is longer than what a model sees at once.
  const TensorSpec* positions = inputs.data.find(kPositions);
  return std::make_shared<SampleGeneration>(config, (positions != nullptr ? *positions : *input).max_length);
}

}  // namespace components::callback::sample_generation
