#include "components/callback/eval_samples.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "components/tensor/tensors.h"

// B: samples of the batch   C: classes   T: positions   O: values

namespace components::callback {
namespace {

constexpr std::int64_t kPositionsMax = 512;  ///< length of a sequence that is readable and fits a message

bool is_worse(const EvalSample& a, const EvalSample& b) {
  if (std::isnan(a.loss) != std::isnan(b.loss)) return std::isnan(a.loss);
  if (a.loss != b.loss && !std::isnan(a.loss)) return a.loss > b.loss;
  return a.index < b.index;
}

bool comes_before(const EvalSample& a, const EvalSample& b) { return a.index < b.index; }

void insert(std::vector<EvalSample>& samples, const EvalSample& sample, std::int64_t most,
            bool (*before)(const EvalSample&, const EvalSample&)) {
  samples.insert(std::upper_bound(samples.begin(), samples.end(), sample, before), sample);
  if (samples.size() > static_cast<std::size_t>(most)) samples.pop_back();
}

/// `output`: [1, C], [1, T, C] or [1, O]; `target` tells which.
void predict(const at::Tensor& output, const at::Tensor& target, EvalSample& sample) {
  at::Tensor values = output[0].to(at::kFloat);
  if (target.scalar_type() == at::kLong) {
    const at::Tensor guess = at::argmax(values, -1);
    if (target.dim() == 1) sample.probability = at::softmax(values, -1)[guess.item<std::int64_t>()].item<double>();
    values = guess;
  }
  values = values.flatten().slice(0, 0, kPositionsMax).to(at::kDouble).contiguous();
  const double* begin = values.const_data_ptr<double>();
  sample.prediction.assign(begin, begin + values.numel());
}

void append(std::string& bytes, double value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }

double take(std::string_view& bytes) {
  double value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

}  // namespace

void EvalSamples::add(const EvalBatch& batch) {
  if (worst_max_ == 0 && batch.first >= first_max_) return;
  std::vector<std::string> names = batch.loss.reads();
  names.insert(names.end(), {kOutput, kTarget});
  const TensorMap tensors = on_cpu(batch.tensors, names);
  const std::int64_t samples = tensors.at(kTarget).size(0);
  for (std::int64_t i = 0; i < samples; ++i) {
    EvalSample sample;
    sample.index = batch.first + i;
    if (worst_max_ == 0 && sample.index >= first_max_) break;
    const TensorMap own = sample_of(tensors, i);
    const std::vector<std::int64_t> counts = batch.loss.counts(own);
    const std::vector<double> sums = batch.loss.sums(own);
    sample.loss = counts.front() > 0 ? loss::mean_of(sums, counts) : 0.0;
    if (sample.index >= first_max_ && !is_among_worst(sample)) continue;
    predict(own.at(kOutput), own.at(kTarget), sample);
    keep(sample);
  }
}

bool EvalSamples::is_among_worst(const EvalSample& sample) const {
  if (worst_.size() < static_cast<std::size_t>(worst_max_)) return true;
  return worst_max_ > 0 && is_worse(sample, worst_.back());
}

void EvalSamples::keep(const EvalSample& sample) {
  if (sample.index < first_max_) insert(first_, sample, first_max_, comes_before);
  if (is_among_worst(sample)) insert(worst_, sample, worst_max_, is_worse);
}

std::string EvalSamples::bytes() const {
  // Each once: one of the first may be among the worst.
  std::vector<const EvalSample*> all;
  for (const EvalSample& sample : first_) all.push_back(&sample);
  for (const EvalSample& sample : worst_) {
    if (sample.index >= first_max_) all.push_back(&sample);
  }
  std::string bytes;
  for (const EvalSample* sample : all) {
    append(bytes, static_cast<double>(sample->index));
    append(bytes, sample->loss);
    append(bytes, sample->probability);
    append(bytes, static_cast<double>(sample->prediction.size()));
    for (const double value : sample->prediction) append(bytes, value);
  }
  return bytes;
}

void EvalSamples::add(const std::string& bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    EvalSample sample;
    sample.index = static_cast<std::int64_t>(take(rest));
    sample.loss = take(rest);
    sample.probability = take(rest);
    sample.prediction.resize(static_cast<std::size_t>(take(rest)));
    for (double& value : sample.prediction) value = take(rest);
    keep(sample);
  }
}

}  // namespace components::callback
