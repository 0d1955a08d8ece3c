#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/metric/classes.h"

namespace components::metric {

/// How many samples of a class and of all others have one score.
struct ScoreGroup {
  double positives = 0.0, negatives = 0.0;
};

/// A metric of how the probabilities of a class or label order the samples. It keeps each sample's probabilities, and
/// its class or labels.
///
/// Ties of probabilities are those of float32, as of the softmax or sigmoid in the model's own precision.
class ClassRows final : public Metric {
 public:
  /// The value of one class from its groups, in decreasing order of the score; NaN when undefined.
  using Score = double (*)(std::span<const ScoreGroup> groups);

  /// What a class without a value adds to the mean over classes, as torchmetrics has it; a label adds 0.
  enum class Undefined {
    kZero,
    kLeftOut,  ///< but 0 where every sample is of class 0, which torchmetrics takes for a target without classes
  };

  struct Options {
    std::string name;
    Score score = nullptr;
    const char* why_undefined = "";
    Undefined undefined = Undefined::kZero;
    Average average = Average::kMacro;
    std::int64_t classes = 0;
    bool of_labels = false;
    std::optional<std::int64_t> ignore_index = {};
  };

  explicit ClassRows(Options options) : options_(std::move(options)) {}

  std::vector<std::string> names() const override {
    return class_names(options_.name, options_.average, options_.classes);
  }
  void reset() override { rows_.clear(); }
  void update(const JudgedBatch& batch) override;
  std::vector<double> values() const override;
  std::string why_undefined() const override { return options_.why_undefined; }
  std::int64_t row_width() const override { return scores() + (options_.of_labels ? options_.classes : 1); }
  std::vector<float> rows() const override { return rows_; }
  void set_rows(std::vector<float> rows) override { rows_ = std::move(rows); }
  bool higher_is_better() const override { return true; }

 private:
  /// Kept of a sample: among two classes that of class 1 alone.
  std::int64_t scores() const { return options_.average == Average::kBinary ? 1 : options_.classes; }
  /// Whether the sample of a row is of that class, or has the label.
  bool has(const float* row, std::int64_t positive) const;
  double of_class(std::int64_t column, std::int64_t positive) const;

  Options options_;
  std::vector<float> rows_;
};

/// Null after an error.
template <typename Config>
std::shared_ptr<Metric> make_class_rows(ClassRows::Options options, const Config& config, const Inputs& inputs) {
  if (!takes_classes_or_labels(options.name, inputs)) return nullptr;
  if (inputs.find(kTarget)->shape.size() > 1 && !inputs.of_labels) {
    inputs.diagnostics.error(
        inputs.block.location(),
        options.name + " needs one class for each sample, but the target is " + to_text(*inputs.find(kTarget)),
        "use perplexity, accuracy or f1 for ids");
    return nullptr;
  }
  const auto average = average_of(config.average, options.name, inputs);
  if (!average) return nullptr;
  options.average = *average;
  options.name = config.name.value_or(options.name);
  options.classes = classes_of(inputs);
  options.of_labels = inputs.of_labels;
  options.ignore_index = inputs.ignore_index;
  return std::make_shared<ClassRows>(std::move(options));
}

}  // namespace components::metric
