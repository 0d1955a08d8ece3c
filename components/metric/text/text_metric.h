#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "components/metric/exact_sum.h"
#include "components/metric/metric.h"

namespace components::metric {

/// A metric of generated texts.
class TextMetric : public Metric {
 public:
  bool judges_texts() const final { return true; }
  std::vector<std::string> reads() const final { return {}; }
  void update(const JudgedBatch& /*batch*/) final {}
  std::string why_undefined() const override { return "no sample has a prompt and an answer"; }
  bool higher_is_better() const final { return true; }
};

/// The mean over texts of some scores.
class MeanTextScores : public TextMetric {
 public:
  /// `scale`: of the values, 1 or 100.
  MeanTextScores(std::vector<std::string> names, double scale)
      : names_(std::move(names)), scale_(scale), sums_(names_.size()) {}

  std::vector<std::string> names() const final { return names_; }
  void reset() final {
    texts_ = 0;
    sums_.assign(sums_.size(), {});
  }
  void judge_text(const std::string& told, const std::string& right) final {
    const std::vector<double> found = scores(told, right);
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i].add(found[i]);
    ++texts_;
  }
  bool judges_answers() const final { return true; }
  /// As SQuAD judges answers: each score is the best one.
  void judge_answer(const std::string& told, std::span<const std::string> right) final {
    std::vector<double> best(sums_.size(), 0.0);
    for (const std::string& one : right) {
      const std::vector<double> found = scores(told, one);
      for (std::size_t i = 0; i < best.size(); ++i) best[i] = std::max(best[i], found[i]);
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i].add(best[i]);
    ++texts_;
  }
  std::vector<double> values() const final {
    std::vector<double> values;
    for (const ExactSum& sum : sums_) {
      values.push_back(texts_ == 0 ? std::numeric_limits<double>::quiet_NaN()
                                   : scale_ * sum.value() / static_cast<double>(texts_));
    }
    return values;
  }
  std::vector<double> sums() const final {
    std::vector<double> numbers = {static_cast<double>(texts_)};
    for (const ExactSum& sum : sums_) sum.write(numbers);
    return numbers;
  }
  void set_sums(std::span<const double> sums) final {
    texts_ = static_cast<std::int64_t>(sums[0]);
    std::span<const double> rest = sums.subspan(1);
    for (ExactSum& sum : sums_) sum = ExactSum::read(rest);
  }

 protected:
  /// One for each name.
  virtual std::vector<double> scores(const std::string& told, const std::string& right) const = 0;

 private:
  std::vector<std::string> names_;
  double scale_;
  std::vector<ExactSum> sums_;
  std::int64_t texts_ = 0;
};

}  // namespace components::metric
