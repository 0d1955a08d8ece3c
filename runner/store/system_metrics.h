#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/platform/gpu_usage.h"
#include "runner/core/platform/usage.h"
#include "runner/store/run_writer.h"

namespace runner::store {

inline constexpr const char* kSystemContext = "system";  ///< of the series that say how the machine is used

struct SystemMetricsOptions {
  double interval_s = 0;     ///< 0 disables it
  bool begins_late = false;  ///< start with the first step after kLateMs, for a run that may end before
  int rank = 0;              ///< the others only watch their GPU, and hand its readings to rank 0
  std::string gpu = "";      ///< PCI address of this process's GPU; "": it trains on the CPU
};

/// Logs usage of the machine and of the ranks' GPUs into a run at an interval, from its own thread.
class SystemMetrics {
 public:
  /// `run` must outlive this.
  SystemMetrics(RunWriter& run, SystemMetricsOptions options, const core::Clock& clock);
  static constexpr std::int64_t kLateMs = 500;
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

  /// Numbers in a message of gpu_message().
  static constexpr std::size_t kMessage = 1 + core::kGpuReadings.size();
  /// The last reading of this process's GPU, for rank 0.
  std::array<double, kMessage> gpu_message() const;
  /// On rank 0: logs what another rank has sent, once.
  void log_gpu(int rank, std::span<const double> message);

 private:
  void begin();
  void begin_if_late();
  void watch();
  void read_gpu();
  void add_gpu(int rank, const core::GpuReading& reading, std::vector<MetricValue>& values);

  RunWriter& run_;
  std::optional<core::UsageReader> reader_;  ///< time of the first reading
  std::optional<core::GpuUsage> gpus_;       ///< from the first reading on
  const SystemMetricsOptions options_;
  const core::Clock& clock_;
  const std::int64_t made_ns_;
  bool begins_late_;                    ///< and has not yet
  std::atomic<std::int64_t> step_{-1};  ///< -1: not set
  std::mutex mutex_;
  std::condition_variable leaving_;
  bool leaves_ = false;  // guarded by mutex_
  mutable std::mutex gpu_mutex_;
  core::GpuReading gpu_;          // guarded by gpu_mutex_
  std::int64_t gpu_number_ = 0;   // guarded by gpu_mutex_; counts the readings
  std::map<int, double> logged_;  ///< number of the last reading that another rank has sent
  std::optional<std::future<void>> watching_;
};

}  // namespace runner::store
