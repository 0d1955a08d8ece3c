// B: samples   C: classes   L: labels

#include "components/metric/class_rows.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace components::metric {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void ClassRows::update(const JudgedBatch& batch) {
  if (options_.of_labels) {
    const at::Tensor labels_BL = true_labels(options_.name, batch.tensors.at(kTarget));
    const at::Tensor scores_BL = at::sigmoid(batch.tensors.at(kOutput).to(at::kFloat)).to(at::kCPU);
    const at::Tensor rows_BL = at::cat({scores_BL, labels_BL}, 1).contiguous();
    const auto* first = rows_BL.const_data_ptr<float>();
    rows_.insert(rows_.end(), first, first + rows_BL.numel());
    return;
  }
  const at::Tensor& target_B = batch.tensors.at(kTarget);
  const at::Tensor counted_B = counted_targets(target_B, options_.ignore_index);
  at::Tensor scores = at::softmax(batch.tensors.at(kOutput).to(at::kFloat), -1);
  if (options_.average == Average::kBinary) scores = scores.narrow(1, 1, 1);
  const at::Tensor rows = at::cat({scores, target_B.to(at::kFloat).unsqueeze(1)}, 1)
                              .masked_select(counted_B.unsqueeze(1))
                              .to(at::kCPU)
                              .contiguous();
  const auto* first = rows.const_data_ptr<float>();
  rows_.insert(rows_.end(), first, first + rows.numel());
}

bool ClassRows::has(const float* row, std::int64_t positive) const {
  if (options_.of_labels) return row[scores() + positive] == 1.0F;
  return row[scores()] == static_cast<float>(positive);
}

double ClassRows::of_class(std::int64_t column, std::int64_t positive) const {
  struct Sample {
    float score;
    bool is_positive;
  };
  const std::int64_t width = row_width();
  std::vector<Sample> samples;
  for (auto row = rows_.begin(); row != rows_.end(); row += width) {
    const float score = row[column];
    if (std::isnan(score)) return kNaN;
    samples.push_back({score, has(&*row, positive)});
  }
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.score > b.score; });
  std::vector<ScoreGroup> groups;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i == 0 || samples[i].score != samples[i - 1].score) groups.emplace_back();
    (samples[i].is_positive ? groups.back().positives : groups.back().negatives) += 1.0;
  }
  return options_.score(groups);
}

std::vector<double> ClassRows::values() const {
  if (options_.average == Average::kBinary) return {of_class(0, 1)};
  std::vector<double> values, weights;
  for (std::int64_t c = 0; c < options_.classes; ++c) {
    values.push_back(of_class(c, c));
    weights.push_back(options_.average == Average::kWeighted ? 0.0 : 1.0);
  }
  if (options_.average == Average::kNone) return values;
  const bool none_defined = std::all_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  bool only_class_0 = !options_.of_labels;
  const std::int64_t width = row_width();
  for (auto row = rows_.begin(); row != rows_.end(); row += width) {
    if (std::any_of(row, row + width, [](float number) { return std::isnan(number); })) return {kNaN};
    only_class_0 = only_class_0 && has(&*row, 0);
    for (std::int64_t c = 0; c < options_.classes && options_.average == Average::kWeighted; ++c)
      weights[static_cast<std::size_t>(c)] += has(&*row, c) ? 1.0 : 0.0;
  }
  if ((options_.undefined == Undefined::kZero || only_class_0 || options_.of_labels) && !none_defined) {
    for (double& value : values) value = std::isnan(value) ? 0.0 : value;
  }
  return {defined_mean(values, weights)};
}

}  // namespace components::metric
