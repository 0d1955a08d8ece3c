#include "runner/core/platform/gpu_usage.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "runner/core/platform/process.h"
#include "runner/core/text.h"

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

int visible_gpus(const std::string& library) {
  const int all = GpuUsage(library).count();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr || all == 0) return all;
  // A list of numbers or identifiers. CUDA ignores everything from the first that is no GPU on.
  int count = 0;
  std::istringstream names(visible);
  for (std::string name; std::getline(names, name, ',');) {
    const std::string id(trimmed(name));
    const bool is_number = !id.empty() && id.find_first_not_of("0123456789") == std::string::npos;
    if (is_number ? id.size() > 9 || std::stoi(id) >= all : !id.starts_with("GPU-") && !id.starts_with("MIG-")) break;
    ++count;
  }
  return count;
}

int usable_gpus() {
  std::error_code ignored;
  return std::filesystem::exists(library_beside_program("libroux_cuda.so"), ignored) ? visible_gpus() : 0;
}

}  // namespace runner::core
