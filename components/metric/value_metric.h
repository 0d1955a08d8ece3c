#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/metric/exact_sum.h"
#include "components/metric/metric.h"

namespace components::metric {

/// A metric of values against values of the same shape, from exact sums over their elements.
class ValueMetric : public Metric {
 public:
  ValueMetric(std::string name, std::size_t sums) : name_(std::move(name)), sums_(sums) {}

  std::vector<std::string> names() const final { return {name_}; }
  void reset() final;
  void update(const JudgedBatch& batch) final;
  std::vector<double> values() const final;
  std::string why_undefined() const override {
    return count_ == 0.0 ? "there are no targets" : "an output is not a number";
  }
  std::vector<double> sums() const final;
  void set_sums(std::span<const double> sums) final;
  bool higher_is_better() const override { return false; }

 private:
  /// Adds what an element gives to each sum.
  virtual void add(double output, double target, std::span<ExactSum> sums) const = 0;
  /// The metric over `count` elements, at least one.
  virtual double of(std::span<const ExactSum> sums, double count) const = 0;

  std::string name_;
  std::vector<ExactSum> sums_;
  double count_ = 0.0;
};

/// Whether output and target are values of one shape; tells the diagnostics if they are not.
bool takes_values(const std::string& name, const Inputs& inputs);
/// Whether they are also one for each sample.
bool takes_one_value(const std::string& name, const Inputs& inputs);

}  // namespace components::metric
