// A driver's library with one GPU in it, or FAKE_GPUS of them, for tests/runner/core/platform/gpu_usage_test.cpp.
#include <cstdlib>

namespace {

struct Utilization {
  unsigned int gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
int gpu;

}  // namespace

extern "C" {
__attribute__((visibility("default"))) int nvmlInit_v2() { return 0; }
__attribute__((visibility("default"))) int nvmlShutdown() { return 0; }
__attribute__((visibility("default"))) int nvmlDeviceGetCount_v2(unsigned int* count) {
  const char* wanted = std::getenv("FAKE_GPUS");
  *count = wanted == nullptr ? 1 : static_cast<unsigned int>(std::atoi(wanted));
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetHandleByIndex_v2(unsigned int, void** device) {
  *device = &gpu;
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetUtilizationRates(void* device, Utilization* used) {
  *used = {75, 10};
  return device == &gpu ? 0 : 1;
}
__attribute__((visibility("default"))) int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {80'000'000'000ULL, 60'000'000'000ULL, 20'000'000'000ULL};
  return 0;
}
__attribute__((visibility("default"))) int nvmlDeviceGetPowerUsage(void*, unsigned int*) { return 3; }  // not supported
}
