#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/store/run_writer.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/step/stepper.h"

namespace runner::train {

/// The series of the training steps, and the aggregates between two logged steps.
class StepMetrics {
 public:
  /// `peak_flops`: of this machine for the recipe's precision, in FLOP/s; 0 when not measured (then there is no `mfu`).
  StepMetrics(store::RunWriter& run, const Experiment& experiment, double peak_flops);

  void start_at(double seconds) { logged_seconds_ = seconds; }
  /// Every step, logged or not.
  void count(const StepResult& result);
  void log(std::int64_t step, const StepResult& result, double seconds);
  /// `26.0 k tokens/s`; "" before the first logged step.
  std::string rate_text() const;

 private:
  void add(std::size_t which, double value) { values_.push_back({ids_[which], value}); }

  store::RunWriter& run_;
  double peak_flops_;
  bool by_tokens_;
  double flops_per_sample_ = 0, flops_ = 0, rate_ = 0, logged_seconds_ = 0, data_seconds_ = 0;
  std::int64_t samples_ = 0, tokens_ = 0, memory_bytes_ = 0;
  std::optional<double> memory_looked_at_;  ///< seconds of the training
  std::vector<store::MetricId> ids_;
  std::vector<store::MetricId> figure_ids_;       ///< of the loss
  std::optional<store::MetricId> loss_scale_id_;  ///< logged only if the loss is scaled
  std::vector<store::MetricValue> values_;
};

/// Peak memory of this process so far, in bytes.
std::int64_t peak_memory_bytes();

}  // namespace runner::train
