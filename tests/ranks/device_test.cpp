#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/process/launched.h"
#include "tests/support/process/pretended_gpu.h"
#include "tests/support/process/process.h"
#include "tests/support/process/run_place.h"
#include "tests/support/process/same_end.h"

namespace {

std::string libraries_of(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  return (std::ostringstream() << maps.rdbuf()).str();
}

using tests::Process;
using tests::TestRun;

constexpr const char* kOnGpus = R"(
run_name: gpus
seed: 7
device: cuda
model: {type: mlp, hidden: [16], dropout: 0.1}
data: {train: {type: synthetic, task: regression, num_samples: 320}}
loss: mse
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 40, micro_batch_size: 4, global_batch_size: 16}
checkpoint: {save_steps: 4}
logging_steps: 1
)";

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

TEST_CASE("a rank with a GPU that is killed is named, and the same command resumes", "[device]") {
  const TestRun straight(kOnGpus), killed(kOnGpus);
  const std::string both = "launch.num_processes=auto";
  {
    Process process(tests::on_gpu(straight.command({both})), tests::with_gpus(), straight.path().string());
    const int status = process.wait();
    INFO(process.output());
    REQUIRE(status == 0);
  }
  {
    Process process(tests::on_gpu(killed.command({both})), tests::with_gpus(), killed.path().string());
    std::size_t seen = 0;
    const auto pids = tests::wait_for_ranks(process, seen);
    REQUIRE(pids.size() == 2);
    REQUIRE(process.wait_for("step-000012 in "));
    kill(pids.at(1), SIGKILL);
    const int status = process.wait();
    INFO(process.output());
    CHECK(status == 1);
    CHECK(process.output().find("error: rank 1 (process " + std::to_string(pids.at(1)) + ") was killed by SIGKILL") !=
          std::string::npos);
  }
  Process process(tests::on_gpu(killed.command({both})), tests::with_gpus(), killed.path().string());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  tests::check_same_end(straight, killed, "step-000040", tests::tensors_of_ranks(2));
}

TEST_CASE("a GPU that is lost ends the run with its words, and the last checkpoint is whole", "[device]") {
  const TestRun straight(kOnGpus), lost(kOnGpus);
  {
    Process process(tests::on_gpu(straight.command()), tests::with_gpus(), straight.path().string());
    REQUIRE(process.wait() == 0);
  }
  Process process(tests::on_gpu(lost.command()), tests::with_gpus({{"PRETENDED_LOST", "1500"}}), lost.path().string());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 1);
  CHECK(process.output().find("error: CUDA error: unspecified launch failure\n  hint: ") != std::string::npos);
  const std::string run = lost.run_dir().filename().string();
  Process resumed(tests::on_gpu({"", "resume", run, "--checkpoint", "last"}), tests::with_gpus(), lost.path().string());
  const int after = resumed.wait();
  INFO(resumed.output());
  CHECK(after == 0);
  CHECK(resumed.output().find("from runs/") != std::string::npos);
  tests::check_same_end(straight, lost, "step-000040");
}
