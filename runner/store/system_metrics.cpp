#include "runner/store/system_metrics.h"

#include <chrono>
#include <string>
#include <vector>

#include "runner/core/beside.h"
#include "runner/core/error.h"

namespace runner::store {

SystemMetrics::SystemMetrics(RunWriter& run, double interval_s, const core::Clock& clock)
    : run_(run), reader_(run.run_dir(), clock) {
  if (interval_s > 0) watching_ = core::beside([this, interval_s] { watch(interval_s); });
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
  for (const auto& [name, value] : reader_.read()) values.push_back({run_.metric(name, kSystemContext), value});
  run_.log(step_.load(std::memory_order_relaxed), values);
}

void SystemMetrics::watch(double interval_s) {
  const auto interval = std::chrono::duration<double>(interval_s);
  std::unique_lock lock(mutex_);
  try {
    while (!leaving_.wait_for(lock, interval, [this] { return leaves_; })) {
      if (step_.load(std::memory_order_relaxed) >= 0) log();  // not while a checkpoint is still being read
    }
  } catch (const core::RunError&) {
    // run.db is not written any more: the loop meets the same and says it.
  }
}

}  // namespace runner::store
