#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <mutex>
#include <optional>

#include "runner/core/clock.h"
#include "runner/core/platform/usage.h"
#include "runner/store/run_writer.h"

namespace runner::store {

inline constexpr const char* kSystemContext = "system";  ///< of the series that say how the machine is used

/// Logs machine usage into a run at an interval, from its own thread.
class SystemMetrics {
 public:
  /// `run` must outlive this. `interval_s`: 0 disables it. `begins_late`: start with the first step after kLate_ms, for
  /// a run that may end before.
  SystemMetrics(RunWriter& run, double interval_s, const core::Clock& clock, bool begins_late = false);
  static constexpr std::int64_t kLate_ms = 500;
  ~SystemMetrics();
  SystemMetrics(const SystemMetrics&) = delete;
  SystemMetrics& operator=(const SystemMetrics&) = delete;

  /// Sets the step of later readings; before the first call none are logged. Costs the loop one store to memory.
  void at_step(std::int64_t step) {
    step_.store(step, std::memory_order_relaxed);
    if (begins_late_) begin_if_late();
  }
  /// One reading, now.
  void log();

 private:
  void begin();
  void begin_if_late();
  void watch();

  RunWriter& run_;
  std::optional<core::UsageReader> reader_;  ///< time of the first reading
  const double interval_s_;
  const core::Clock& clock_;
  const std::int64_t made_ns_;
  bool begins_late_;                    ///< and has not yet
  std::atomic<std::int64_t> step_{-1};  ///< -1: not set
  std::mutex mutex_;
  std::condition_variable leaving_;
  bool leaves_ = false;  // guarded by mutex_
  std::optional<std::future<void>> watching_;
};

}  // namespace runner::store
