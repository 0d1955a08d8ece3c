#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/metric/classes.h"

namespace components::metric {

/// How often a class was predicted, was the target, and both at once.
struct ClassCount {
  double hits = 0.0, guessed = 0.0, actual = 0.0;
};

/// A metric of counts by class: the class with the largest output against the target.
class ClassCounts : public Metric {
 public:
  ClassCounts(std::int64_t classes, std::optional<std::int64_t> ignore_index)
      : ignore_index_(ignore_index), counts_(static_cast<std::size_t>(classes)) {}

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

 private:
  std::optional<std::int64_t> ignore_index_;
  std::vector<ClassCount> counts_;
};

/// A score of one class, such as its precision, and how it becomes the metric's. A score without a denominator is 0,
/// and a class that neither was predicted nor is a target has no part in `macro`, as torchmetrics has them.
class ClassScore final : public ClassCounts {
 public:
  using Score = double (*)(const ClassCount&);

  ClassScore(std::string name, Score score, Average average, std::int64_t classes,
             std::optional<std::int64_t> ignore_index)
      : ClassCounts(classes, ignore_index), name_(std::move(name)), score_(score), average_(average) {}

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
  if (!takes_classes(name, inputs)) return nullptr;
  const auto average = average_of(config.average, name, inputs);
  if (!average) return nullptr;
  return std::make_shared<ClassScore>(name, score, *average, classes_of(inputs), inputs.ignore_index);
}

/// 0 where nothing is divided by.
inline double ratio(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }

}  // namespace components::metric
