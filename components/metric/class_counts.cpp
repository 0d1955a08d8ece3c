// N: targets   C: classes

#include "components/metric/class_counts.h"

#include <ATen/ops/argmax.h>

#include <cmath>
#include <limits>

namespace components::metric {

void ClassCounts::reset() { counts_.assign(counts_.size(), {}); }

void ClassCounts::update(const JudgedBatch& batch) {
  const at::Tensor& target = batch.tensors.at(kTarget);
  const at::Tensor counted = counted_targets(target, ignore_index_);
  const at::Tensor target_N = target.masked_select(counted).to(at::kCPU).contiguous();
  const at::Tensor guess_N = at::argmax(batch.tensors.at(kOutput), -1).masked_select(counted).to(at::kCPU).contiguous();
  const auto* actual = target_N.const_data_ptr<std::int64_t>();
  const auto* guessed = guess_N.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < target_N.numel(); ++i) {
    counts_.at(static_cast<std::size_t>(actual[i])).actual += 1.0;
    counts_.at(static_cast<std::size_t>(guessed[i])).guessed += 1.0;
    if (actual[i] == guessed[i]) counts_[static_cast<std::size_t>(actual[i])].hits += 1.0;
  }
}

std::vector<double> ClassCounts::sums() const {
  std::vector<double> sums;
  for (const ClassCount& one : counts_) sums.insert(sums.end(), {one.hits, one.guessed, one.actual});
  return sums;
}

void ClassCounts::set_sums(std::span<const double> sums) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] = {sums[3 * i], sums[3 * i + 1], sums[3 * i + 2]};
}

ClassCount ClassCounts::total() const {
  ClassCount total;
  for (const ClassCount& one : counts_) {
    total.hits += one.hits;
    total.guessed += one.guessed;
    total.actual += one.actual;
  }
  return total;
}

std::vector<std::string> ClassScore::names() const {
  return class_names(name_, average_, static_cast<std::int64_t>(counts().size()));
}

std::vector<double> ClassScore::values() const {
  const ClassCount all = total();
  if (all.actual == 0.0) return std::vector<double>(names().size(), std::numeric_limits<double>::quiet_NaN());
  if (average_ == Average::kMicro) return {score_(all)};
  if (average_ == Average::kBinary) return {score_(counts()[1])};
  std::vector<double> scores, weights;
  for (const ClassCount& one : counts()) {
    scores.push_back(score_(one));
    weights.push_back(average_ == Average::kWeighted ? one.actual : one.actual + one.guessed > 0.0 ? 1.0 : 0.0);
  }
  if (average_ == Average::kNone) return scores;
  return {defined_mean(scores, weights)};
}

}  // namespace components::metric
