#include "runner/core/platform/gpu_usage.h"

#include <catch2/catch.hpp>

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

}  // namespace runner::core
