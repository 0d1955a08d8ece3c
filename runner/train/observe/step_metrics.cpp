#include "runner/train/observe/step_metrics.h"

#include <sys/resource.h>

#include <algorithm>

#include "runner/core/units.h"

namespace runner::train {
namespace {

constexpr double kMemoryLookSeconds = 0.1;  ///< the system call costs 1 % of the fastest steps

}  // namespace

std::int64_t peak_memory_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

StepMetrics::StepMetrics(store::RunWriter& run, const Experiment& experiment, double peak_flops)
    : run_(run), peak_flops_(peak_flops), by_tokens_(experiment.train_data->tokens_per_sample() > 0) {
  flops_per_sample_ = training_flops(experiment);
  for (const char* name : {"loss", "lr", "grad_norm", by_tokens_ ? "tokens_per_s" : "samples_per_s", "flops_per_s",
                           "data_wait", "peak_memory_bytes", "mfu"}) {
    ids_.push_back(run.metric(name));
  }
  for (const std::string& name : experiment.loss->figure_names()) figure_ids_.push_back(run.metric(name));
}

void StepMetrics::count(const StepResult& result) {
  samples_ += result.samples;
  tokens_ += result.tokens;
  flops_ += result.flops > 0 ? result.flops : flops_per_sample_ * static_cast<double>(result.samples);
  data_seconds_ += result.data_seconds;
}

void StepMetrics::log(std::int64_t step, const StepResult& result, double seconds) {
  const double elapsed = std::max(seconds - logged_seconds_, 1e-9);
  rate_ = static_cast<double>(by_tokens_ ? tokens_ : samples_) / elapsed;
  const double flops = flops_ / elapsed;
  values_.clear();
  add(0, result.loss);
  add(1, result.lr);
  if (result.grad_norm) add(2, *result.grad_norm);
  add(3, rate_);
  if (flops > 0) add(4, flops);
  add(5, std::min(1.0, data_seconds_ / elapsed));
  if (!memory_looked_at_ || seconds - *memory_looked_at_ >= kMemoryLookSeconds) {
    memory_bytes_ = peak_memory_bytes();
    memory_looked_at_ = seconds;
  }
  add(6, static_cast<double>(memory_bytes_));
  if (peak_flops_ > 0 && flops > 0) add(7, flops / peak_flops_);
  for (std::size_t i = 0; i < result.figures.size(); ++i) {
    if (result.figures[i]) values_.push_back({figure_ids_[i], *result.figures[i]});
  }
  if (result.loss_scale) {
    if (!loss_scale_id_) loss_scale_id_ = run_.metric("loss_scale");
    values_.push_back({*loss_scale_id_, *result.loss_scale});
  }
  run_.log(step, values_);
  samples_ = tokens_ = 0;
  flops_ = data_seconds_ = 0;
  logged_seconds_ = seconds;
}

std::string StepMetrics::rate_text() const {
  return rate_ > 0 ? core::format_count(rate_) + (by_tokens_ ? " tokens/s" : " samples/s") : "";
}

}  // namespace runner::train
