#include "runner/store/system_metrics.h"

#include <chrono>
#include <string>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/run_async.h"

namespace runner::store {

SystemMetrics::SystemMetrics(RunWriter& run, double interval_s, const core::Clock& clock, bool begins_late)
    : run_(run),
      interval_s_(interval_s),
      clock_(clock),
      made_ns_(clock.monotonic_ns()),
      begins_late_(begins_late && interval_s > 0) {
  if (!begins_late_) begin();
}

void SystemMetrics::begin() {
  reader_.emplace(run_.run_dir(), clock_);
  if (interval_s_ <= 0) return;
  watching_ = core::try_run_async([this] { watch(); });
  if (!watching_) core::log_warning("cannot start a thread: system metrics are not recorded");
}

void SystemMetrics::begin_if_late() {
  if (clock_.monotonic_ns() - made_ns_ < kLate_ms * 1'000'000) return;
  begins_late_ = false;
  begin();
}

SystemMetrics::~SystemMetrics() {
  {
    const std::lock_guard lock(mutex_);
    leaves_ = true;
  }
  leaving_.notify_all();
}

void SystemMetrics::log() {
  std::vector<MetricValue> values;
  for (const auto& [name, value] : reader_->read()) values.push_back({run_.metric(name, kSystemContext), value});
  run_.log(step_.load(std::memory_order_relaxed), values);
}

void SystemMetrics::watch() {
  const auto interval = std::chrono::duration<double>(interval_s_);
  std::unique_lock lock(mutex_);
  try {
    while (!leaving_.wait_for(lock, interval, [this] { return leaves_; })) {
      if (step_.load(std::memory_order_relaxed) >= 0) log();  // not while a checkpoint is still being read
    }
  } catch (const core::RunError&) {
    // run.db is no longer written: the loop gets the same error and reports it.
  }
}

}  // namespace runner::store
