#include "runner/store/system_metrics.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/run_async.h"

namespace runner::store {
namespace {

constexpr double kUnknown = -1;  // no reading is negative

}  // namespace

SystemMetrics::SystemMetrics(RunWriter& run, SystemMetricsOptions options, const core::Clock& clock)
    : run_(run),
      options_(std::move(options)),
      clock_(clock),
      made_ns_(clock.monotonic_ns()),
      begins_late_(options_.begins_late && options_.interval_s > 0) {
  if (!begins_late_) begin();
}

void SystemMetrics::begin() {
  if (options_.rank == 0) reader_.emplace(run_.run_dir(), clock_);
  const bool has_work = options_.rank == 0 || !options_.gpu.empty();
  if (options_.interval_s <= 0 || !has_work) return;
  watching_ = core::try_run_async([this] { watch(); });
  if (!watching_) core::log_warning("cannot start a thread: system metrics are not recorded");
}

void SystemMetrics::begin_if_late() {
  if (clock_.monotonic_ns() - made_ns_ < kLateMs * 1'000'000) return;
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
  if (!options_.gpu.empty()) read_gpu();
  if (options_.rank > 0) return;
  std::vector<MetricValue> values;
  for (const auto& [name, value] : reader_->read()) values.push_back({run_.metric(name, kSystemContext), value});
  add_gpu(options_.rank, gpu_, values);
  run_.log(step_.load(std::memory_order_relaxed), values);
}

void SystemMetrics::read_gpu() {
  if (!gpus_) gpus_.emplace();
  const core::GpuReading reading = gpus_->read(options_.gpu);
  const std::lock_guard lock(gpu_mutex_);
  gpu_ = reading;
  ++gpu_number_;
}

void SystemMetrics::add_gpu(int rank, const core::GpuReading& reading, std::vector<MetricValue>& values) {
  for (std::size_t i = 0; i < reading.size(); ++i) {
    if (!reading[i]) continue;
    const std::string name = "gpu_" + std::to_string(rank) + "_" + core::kGpuReadings[i];
    values.push_back({run_.metric(name, kSystemContext), *reading[i]});
  }
}

std::array<double, SystemMetrics::kMessage> SystemMetrics::gpu_message() const {
  const std::lock_guard lock(gpu_mutex_);
  std::array<double, kMessage> message;
  message[0] = static_cast<double>(gpu_number_);
  for (std::size_t i = 0; i < gpu_.size(); ++i) message[i + 1] = gpu_[i].value_or(kUnknown);
  return message;
}

void SystemMetrics::log_gpu(int rank, std::span<const double> message) {
  double& logged = logged_[rank];
  if (message[0] == logged) return;
  logged = message[0];
  core::GpuReading reading;
  for (std::size_t i = 0; i < reading.size(); ++i) {
    if (message[i + 1] != kUnknown) reading[i] = message[i + 1];
  }
  std::vector<MetricValue> values;
  add_gpu(rank, reading, values);
  if (values.empty()) return;  // its driver reports nothing
  run_.log(step_.load(std::memory_order_relaxed), values);
}

void SystemMetrics::watch() {
  const auto interval = std::chrono::duration<double>(options_.interval_s);
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
