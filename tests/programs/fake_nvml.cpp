// A driver's library with one GPU in it, or FAKE_GPUS of them: number N has the PCI address 0000:0N:00.0, and is busy
// for 75 - N % of the time.
#include <array>
#include <cstdlib>
#include <string>

namespace {

struct Utilization {
  unsigned int gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
std::array<int, 8> gpus;

unsigned int count() {
  const char* wanted = std::getenv("FAKE_GPUS");
  return wanted == nullptr ? 1 : static_cast<unsigned int>(std::atoi(wanted));
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) int nvmlInit_v2() { return 0; }
__attribute__((visibility("default"))) int nvmlShutdown() { return 0; }
__attribute__((visibility("default"))) int nvmlDeviceGetCount_v2(unsigned int* number) {
  *number = count();
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  for (unsigned int i = 0; i < count(); ++i) {
    if (address != "0000:0" + std::to_string(i) + ":00.0") continue;
    *device = &gpus.at(i);
    return 0;
  }
  return 6;  // not found
}
__attribute__((visibility("default"))) int nvmlDeviceGetUtilizationRates(void* device, Utilization* used) {
  *used = {75 - static_cast<unsigned int>(static_cast<int*>(device) - gpus.data()), 10};
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {80'000'000'000ULL, 60'000'000'000ULL, 20'000'000'000ULL};
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetPowerUsage(void*, unsigned int*) { return 3; }  // not supported
}
