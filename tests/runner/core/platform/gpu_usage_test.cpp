#include "runner/core/platform/gpu_usage.h"
#include "tests/support/paths.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace runner::core {

TEST_CASE("a GPU is read at its address, as far as its driver reports", "[core][usage]") {
  setenv("FAKE_GPUS", "2", 1);
  const GpuUsage gpus(tests::build_dir() + "/lib/libfake_nvml.so");
  CHECK(gpus.read("0000:00:00.0") == GpuReading{75, 20'000, 25, std::nullopt});
  CHECK(gpus.read("0000:01:00.0") == GpuReading{74, 20'000, 25, std::nullopt});
  CHECK(gpus.read("0000:02:00.0") == GpuReading());
  unsetenv("FAKE_GPUS");
}

TEST_CASE("where there is no driver there is nothing to read", "[core][usage]") {
  CHECK(GpuUsage("libno-such-driver.so").read("0000:00:00.0") == GpuReading());
}

TEST_CASE("the GPUs that a program sees are those of CUDA_VISIBLE_DEVICES", "[core][usage]") {
  const std::string driver = tests::build_dir() + "/lib/libfake_nvml.so";
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
