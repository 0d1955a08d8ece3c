// A driver's library with one GPU in it, for tests/runner/core/platform/gpu_usage_test.cpp.

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
  *count = 1;
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
