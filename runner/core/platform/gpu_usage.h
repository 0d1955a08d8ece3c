#pragma once

#include <string>
#include <utility>
#include <vector>

namespace runner::core {

/// Usage of this machine's NVIDIA GPUs, from the driver's library NVML. Needs neither CUDA nor a GPU: without a driver
/// there is nothing to read.
class GpuUsage {
 public:
  /// `library`: found as a program finds its libraries. Loading it takes milliseconds.
  explicit GpuUsage(const std::string& library = "libnvidia-ml.so.1");
  ~GpuUsage();
  GpuUsage(const GpuUsage&) = delete;
  GpuUsage& operator=(const GpuUsage&) = delete;

  /// The number of GPUs of this machine.
  int count() const { return static_cast<int>(devices_.size()); }

  /// `gpu_0_utilization_percentage` and so on, as MLflow calls them, appended to `readings`.
  void read(std::vector<std::pair<std::string, double>>& readings) const;

 private:
  template <typename Function>
  bool find(const char* name, Function& function) const;

  // NVML's own types: a device is a pointer, every function returns 0 on success.
  struct Utilization {
    unsigned int gpu, memory;
  };
  struct Memory {
    unsigned long long total, free, used;
  };
  void* library_ = nullptr;
  int (*shutdown_)() = nullptr;
  int (*utilization_)(void*, Utilization*) = nullptr;
  int (*memory_)(void*, Memory*) = nullptr;
  int (*power_)(void*, unsigned int*) = nullptr;  // in milliwatts
  std::vector<void*> devices_;
};

/// The number of GPUs that CUDA_VISIBLE_DEVICES leaves of those of this machine.
int visible_gpus(const std::string& library = "libnvidia-ml.so.1");

/// The same if this program was built for GPUs; otherwise 0.
int usable_gpus();

}  // namespace runner::core
