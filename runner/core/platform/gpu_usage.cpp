#include "runner/core/platform/gpu_usage.h"

#include <dlfcn.h>

namespace runner::core {

template <typename Function>
bool GpuUsage::find(const char* name, Function& function) const {
  function = reinterpret_cast<Function>(dlsym(library_, name));
  return function != nullptr;
}

GpuUsage::GpuUsage(const std::string& library) : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) return;
  int (*init)() = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*device_at)(unsigned int, void**) = nullptr;
  const bool found = find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown_) &&
                     find("nvmlDeviceGetCount_v2", count) && find("nvmlDeviceGetHandleByIndex_v2", device_at) &&
                     find("nvmlDeviceGetUtilizationRates", utilization_) && find("nvmlDeviceGetMemoryInfo", memory_) &&
                     find("nvmlDeviceGetPowerUsage", power_);
  if (!found || init() != 0) {
    shutdown_ = nullptr;
    return;
  }
  unsigned int devices = 0;
  if (count(&devices) != 0) return;
  for (unsigned int i = 0; i < devices; ++i) {
    void* device = nullptr;
    if (device_at(i, &device) == 0) devices_.push_back(device);
  }
}

GpuUsage::~GpuUsage() {
  if (shutdown_ != nullptr) shutdown_();
  if (library_ != nullptr) dlclose(library_);
}

void GpuUsage::read(std::vector<std::pair<std::string, double>>& readings) const {
  constexpr double kMegabyte = 1e6;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const std::string name = "gpu_" + std::to_string(i) + "_";
    if (Utilization used = {}; utilization_(devices_[i], &used) == 0) {
      readings.emplace_back(name + "utilization_percentage", used.gpu);
    }
    if (Memory memory = {}; memory_(devices_[i], &memory) == 0 && memory.total > 0) {
      const auto bytes = static_cast<double>(memory.used);
      readings.emplace_back(name + "memory_usage_megabytes", bytes / kMegabyte);
      readings.emplace_back(name + "memory_usage_percentage", 100.0 * bytes / static_cast<double>(memory.total));
    }
    if (unsigned int milliwatts = 0; power_(devices_[i], &milliwatts) == 0) {
      readings.emplace_back(name + "power_usage_watts", milliwatts * 1e-3);
    }
  }
}

}  // namespace runner::core
