#include "runner/core/platform/gpu_usage.h"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>

#include "runner/core/platform/python_package.h"
#include "runner/core/text/text.h"

namespace runner::core {

template <typename Function>
bool GpuUsage::find(const char* name, Function& function) const {
  function = reinterpret_cast<Function>(dlsym(library_, name));
  return function != nullptr;
}

GpuUsage::GpuUsage(const std::string& library) : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) return;
  int (*init)() = nullptr;
  const bool found = find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown_) &&
                     find("nvmlDeviceGetCount_v2", count_) && find("nvmlDeviceGetHandleByPciBusId_v2", device_at_) &&
                     find("nvmlDeviceGetUtilizationRates", utilization_) && find("nvmlDeviceGetMemoryInfo", memory_) &&
                     find("nvmlDeviceGetPowerUsage", power_);
  if (!found || init() != 0) shutdown_ = nullptr;
}

GpuUsage::~GpuUsage() {
  if (shutdown_ != nullptr) shutdown_();
  if (library_ != nullptr) dlclose(library_);
}

int GpuUsage::count() const {
  unsigned int devices = 0;
  return shutdown_ != nullptr && count_(&devices) == 0 ? static_cast<int>(devices) : 0;
}

GpuReading GpuUsage::read(const std::string& pci_address) const {
  constexpr double kMegabyte = 1e6;
  GpuReading reading;
  auto& [utilization, megabytes, percentage, watts] = reading;
  void* device = nullptr;
  if (shutdown_ == nullptr || device_at_(pci_address.c_str(), &device) != 0) return reading;
  if (Utilization used = {}; utilization_(device, &used) == 0) utilization = used.gpu;
  if (Memory memory = {}; memory_(device, &memory) == 0 && memory.total > 0) {
    const auto bytes = static_cast<double>(memory.used);
    megabytes = bytes / kMegabyte;
    percentage = 100.0 * bytes / static_cast<double>(memory.total);
  }
  if (unsigned int milliwatts = 0; power_(device, &milliwatts) == 0) watts = milliwatts * 1e-3;
  return reading;
}

std::vector<std::string> visible_gpu_names(const std::string& library) {
  const int all = GpuUsage(library).count();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> found;
  if (visible == nullptr || all == 0) {
    for (int gpu = 0; gpu < all; ++gpu) found.push_back(std::to_string(gpu));
    return found;
  }
  // A list of numbers or identifiers. CUDA ignores everything from the first that is no GPU on.
  std::istringstream names(visible);
  for (std::string name; std::getline(names, name, ',');) {
    const std::string id(trimmed(name));
    const bool is_number = !id.empty() && id.find_first_not_of("0123456789") == std::string::npos;
    if (is_number ? id.size() > 9 || std::stoi(id) >= all : !id.starts_with("GPU-") && !id.starts_with("MIG-")) break;
    found.push_back(id);
  }
  return found;
}

int visible_gpus(const std::string& library) { return static_cast<int>(visible_gpu_names(library).size()); }

int usable_gpus() { return has_gpu_libraries() ? visible_gpus() : 0; }

}  // namespace runner::core
