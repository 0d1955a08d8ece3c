#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/metric/classes.h"

namespace components::metric {

/// How often a class or label was predicted, was the target, and both at once.
struct ClassCount {
  double hits = 0.0, guessed = 0.0, actual = 0.0;
};

/// A metric of counts by class: the class with the largest output against the target, or each label against its own.
class ClassCounts : public Metric {
 public:
  explicit ClassCounts(const Inputs& inputs)
      : of_labels_(inputs.of_labels),
        ignore_index_(inputs.ignore_index),
        counts_(static_cast<std::size_t>(classes_of(inputs))) {}

  void reset() final;
  void update(const JudgedBatch& batch) final;
  std::string why_undefined() const override { return "no target counts"; }
  std::vector<double> sums() const final;
  void set_sums(std::span<const double> sums) final;
  bool higher_is_better() const final { return true; }

 protected:
  const std::vector<ClassCount>& counts() const { return counts_; }
  /// Over all classes.
  ClassCount total() const;
  bool of_labels() const { return of_labels_; }
  bool has_targets() const { return targets_ > 0.0; }

 private:
  void count_labels(const JudgedBatch& batch);

  bool of_labels_;
  std::optional<std::int64_t> ignore_index_;
  double targets_ = 0.0;
  std::vector<ClassCount> counts_;
};

/// A score of one class, such as its precision, and how it becomes the metric's. A score without a denominator is 0,
/// and a class, but no label, that neither was predicted nor is a target has no part in `macro`, as torchmetrics has
/// them.
class ClassScore final : public ClassCounts {
 public:
  using Score = double (*)(const ClassCount&);

  ClassScore(std::string name, Score score, Average average, const Inputs& inputs)
      : ClassCounts(inputs), name_(std::move(name)), score_(score), average_(average) {}

  std::vector<std::string> names() const override;
  std::vector<double> values() const override;

 private:
  std::string name_;
  Score score_;
  Average average_;
};

/// Null after an error.
template <typename Config>
std::shared_ptr<Metric> make_class_score(const std::string& name, ClassScore::Score score, const Config& config,
                                         const Inputs& inputs) {
  if (!takes_classes_or_labels(name, inputs)) return nullptr;
  const auto average = average_of(config.average, name, inputs);
  if (!average) return nullptr;
  return std::make_shared<ClassScore>(config.name.value_or(name), score, *average, inputs);
}

/// 0 where nothing is divided by.
inline double ratio(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }

}  // namespace components::metric
