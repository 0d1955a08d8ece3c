// N: targets   B: samples   L: labels

#include "components/metric/class_counts.h"

#include <ATen/ops/argmax.h>

#include <cmath>
#include <limits>

namespace components::metric {

void ClassCounts::reset() {
  targets_ = 0.0;
  counts_.assign(counts_.size(), {});
}

void ClassCounts::update(const JudgedBatch& batch) {
  if (of_labels_) return count_labels(batch);
  const at::Tensor& target = batch.tensors.at(kTarget);
  const at::Tensor counted = counted_targets(target, ignore_index_);
  const at::Tensor target_N = target.masked_select(counted).to(at::kCPU).contiguous();
  const at::Tensor guess_N = at::argmax(batch.tensors.at(kOutput), -1).masked_select(counted).to(at::kCPU).contiguous();
  const auto* actual = target_N.const_data_ptr<std::int64_t>();
  const auto* guessed = guess_N.const_data_ptr<std::int64_t>();
  targets_ += static_cast<double>(target_N.numel());
  for (std::int64_t i = 0; i < target_N.numel(); ++i) {
    counts_.at(static_cast<std::size_t>(actual[i])).actual += 1.0;
    counts_.at(static_cast<std::size_t>(guessed[i])).guessed += 1.0;
    if (actual[i] == guessed[i]) counts_[static_cast<std::size_t>(actual[i])].hits += 1.0;
  }
}

void ClassCounts::count_labels(const JudgedBatch& batch) {
  const at::Tensor label_BL = true_labels(names().front(), batch.tensors.at(kTarget));
  const at::Tensor told_BL = told_labels(batch.tensors.at(kOutput)).to(at::kCPU).contiguous();
  const auto* label = label_BL.const_data_ptr<float>();
  const auto* told = told_BL.const_data_ptr<bool>();
  targets_ += static_cast<double>(label_BL.numel());
  for (std::int64_t i = 0; i < label_BL.numel(); ++i) {
    ClassCount& one = counts_[static_cast<std::size_t>(i) % counts_.size()];
    const bool is_true = label[i] == 1.0F;
    one.actual += is_true ? 1.0 : 0.0;
    one.guessed += told[i] ? 1.0 : 0.0;
    one.hits += is_true && told[i] ? 1.0 : 0.0;
  }
}

std::vector<double> ClassCounts::sums() const {
  std::vector<double> sums = {targets_};
  for (const ClassCount& one : counts_) sums.insert(sums.end(), {one.hits, one.guessed, one.actual});
  return sums;
}

void ClassCounts::set_sums(std::span<const double> sums) {
  targets_ = sums[0];
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] = {sums[3 * i + 1], sums[3 * i + 2], sums[3 * i + 3]};
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
  if (!has_targets()) return std::vector<double>(names().size(), std::numeric_limits<double>::quiet_NaN());
  const ClassCount all = total();
  if (average_ == Average::kMicro) return {score_(all)};
  if (average_ == Average::kBinary) return {score_(counts()[1])};
  std::vector<double> scores, weights;
  for (const ClassCount& one : counts()) {
    scores.push_back(score_(one));
    const bool counts = of_labels() || one.actual + one.guessed > 0.0;
    weights.push_back(average_ == Average::kWeighted ? one.actual : counts ? 1.0 : 0.0);
  }
  if (average_ == Average::kNone) return scores;
  if (average_ == Average::kWeighted && all.actual == 0.0) return {0.0};  // no label is true
  return {defined_mean(scores, weights)};
}

}  // namespace components::metric
