#include "runner/core/platform/gpu_usage.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <utility>

namespace runner::core {

using Readings = std::vector<std::pair<std::string, double>>;

TEST_CASE("a GPU says what its driver can tell", "[core][usage]") {
  Readings readings;
  GpuUsage(std::string(ROUX_BINARY_DIR) + "/lib/libfake_nvml.so").read(readings);
  CHECK(readings == Readings{{"gpu_0_utilization_percentage", 75},
                             {"gpu_0_memory_usage_megabytes", 20'000},
                             {"gpu_0_memory_usage_percentage", 25}});
}

TEST_CASE("where there is no driver there is nothing to read", "[core][usage]") {
  Readings readings;
  GpuUsage("libno-such-driver.so").read(readings);
  CHECK(readings.empty());
}

TEST_CASE("the GPUs that a program sees are those of CUDA_VISIBLE_DEVICES", "[core][usage]") {
  const std::string driver = std::string(ROUX_BINARY_DIR) + "/lib/libfake_nvml.so";
  setenv("FAKE_GPUS", "4", 1);
  const std::pair<const char*, int> cases[] = {{"0", 1},     {"3,1", 2},        {"", 0},      {"-1", 0},
                                               {"0,9,1", 1}, {" 1, 2", 2},      {"0,x,1", 1}, {"GPU-8932f937", 1},
                                               {"4", 0},     {"MIG-a,MIG-b", 2}};
  unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(visible_gpus(driver) == 4);
  for (const auto& [visible, count] : cases) {
    CAPTURE(visible);
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    CHECK(visible_gpus(driver) == count);
    CHECK(visible_gpus("libno-such-driver.so") == 0);
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
  unsetenv("FAKE_GPUS");
}

}  // namespace runner::core
