#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/process/process.h"
#include "tests/support/process/run_place.h"

namespace {

std::string libraries_of(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  return (std::ostringstream() << maps.rdbuf()).str();
}

}  // namespace

TEST_CASE("a training on the CPU maps nothing of a GPU", "[device]") {
  const tests::TestRun place(R"(
model: {type: mlp, hidden: [4]}
data: {train: {type: synthetic, task: regression}}
loss: mse
optimizer: {type: sgd, lr: 1.0e-3}
training: {max_steps: 1000000000, micro_batch_size: 4}
logging_steps: 1
)");
  tests::Process training(place.command(), {}, place.path().string());
  REQUIRE(training.wait_for("run runs/"));
  const std::string libraries = libraries_of(training.pid());
  training.send(SIGKILL);
  CHECK(libraries.find("libtorch_cpu") != std::string::npos);
  // libtorch_cpu itself needs libcudart, the CUDA runtime, which looks for no driver until it is called.
  for (const char* library : {"libcuda.so", "libtorch_cuda", "libc10_cuda", "libroux_cuda", "libnccl", "libcublas"}) {
    INFO(library);
    CHECK(libraries.find(library) == std::string::npos);
  }
}
