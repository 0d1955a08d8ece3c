#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace runner::core {

/// What is read of a GPU, as MLflow calls it after `gpu_0_`.
inline constexpr std::array<const char*, 4> kGpuReadings = {"utilization_percentage", "memory_usage_megabytes",
                                                            "memory_usage_percentage", "power_usage_watts"};
/// A value for each of those, none of them negative.
using GpuReading = std::array<std::optional<double>, kGpuReadings.size()>;

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
  int count() const;
  /// Of the GPU with this PCI address (`0000:65:00.0`), which is the same whatever CUDA_VISIBLE_DEVICES hides and
  /// however CUDA numbers the others. Lacks what its driver does not report; of a part of a GPU (MIG) it is the whole.
  GpuReading read(const std::string& pci_address) const;

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
  int (*shutdown_)() = nullptr;  // null: NVML cannot be used
  int (*count_)(unsigned int*) = nullptr;
  int (*device_at_)(const char*, void**) = nullptr;  // by its PCI address
  int (*utilization_)(void*, Utilization*) = nullptr;
  int (*memory_)(void*, Memory*) = nullptr;
  int (*power_)(void*, unsigned int*) = nullptr;  // in milliwatts
};

/// The GPUs that CUDA_VISIBLE_DEVICES leaves of those of this machine, as a list of it names them.
std::vector<std::string> visible_gpu_names(const std::string& library = "libnvidia-ml.so.1");

/// Their number.
int visible_gpus(const std::string& library = "libnvidia-ml.so.1");

/// The same if this program was built for GPUs; otherwise 0.
int usable_gpus();

}  // namespace runner::core
