#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/json.h"
#include "runner/store/run_reader.h"
#include "tests/support/process/equal_checkpoints.h"
#include "tests/support/process/own_ssh.h"
#include "tests/support/process/pretended_gpu.h"
#include "tests/support/process/process.h"
#include "tests/support/process/rank_processes.h"
#include "tests/support/process/test_run.h"

namespace {

std::string libraries_of(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  return (std::ostringstream() << maps.rdbuf()).str();
}

using tests::Process;
using tests::TestRun;

/// The states of a rank's generators in a checkpoint, by name.
std::map<std::string, std::string> generators_of(const TestRun& test, const std::string& step, int rank) {
  const std::string file = test.saved(step, "random_states_" + std::to_string(rank) + ".safetensors");
  std::uint64_t header = 0;
  REQUIRE(file.size() > sizeof header);
  std::memcpy(&header, file.data(), sizeof header);
  const auto tensors = runner::core::parse_json(file.substr(sizeof header, header)).value();
  std::map<std::string, std::string> states;
  for (const auto& entry : tensors.entries()) {
    const auto* offsets = entry.value.find("data_offsets");
    if (offsets == nullptr) continue;  // the metadata
    const auto begin = static_cast<std::size_t>(offsets->items()[0].as_integer());
    const auto end = static_cast<std::size_t>(offsets->items()[1].as_integer());
    states[entry.key] = file.substr(sizeof header + header + begin, end - begin);
  }
  return states;
}

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
  const tests::TestRun test(R"(
model: {type: mlp, hidden: [4]}
data: {train: {type: synthetic, task: regression}}
loss: mse
optimizer: {type: sgd, lr: 1.0e-3}
training: {max_steps: 1000000000, micro_batch_size: 4}
logging_steps: 1
)");
  tests::Process training(test.command(), {}, test.path().string());
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
    tests::check_killed_rank_is_named(process, 1, pids.at(1));
  }
  Process process(tests::on_gpu(killed.command({both})), tests::with_gpus(), killed.path().string());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  tests::check_equal_checkpoints(straight, killed, "step-000040", tests::tensors_of_ranks(2));
}

TEST_CASE("machines that are started have the number of processes that the first one settles", "[device]") {
  const TestRun test(kOnGpus);
  std::vector<std::string> command = tests::on_gpu(test.command());
  command.insert(command.end(), {"--num-processes", "auto", "--hosts", "127.0.0.1,elsewhere", "--main-process-port",
                                 std::to_string(tests::unused_port())});
  // The driver there tells of one GPU.
  Process process(command, tests::with_own_ssh(test, tests::with_gpus(), "FAKE_GPUS=1"), test.path().string());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  CHECK(process.output().find("started ranks 0 to 1 of 4 as processes ") != std::string::npos);
  CHECK(process.output().find("started ranks 2 to 3 of 4 as processes ") != std::string::npos);
}

TEST_CASE("ranks with a GPU each share its random numbers where the recipe says so", "[device]") {
  const TestRun test(kOnGpus);
  const auto ended = [&test](const std::vector<std::string>& command,
                             const std::map<std::string, std::string>& environment) {
    Process process(command, environment, test.path().string());
    const int status = process.wait();
    return TestRun::Ended{status, process.output()};
  };
  const std::vector<std::string> sets = {"launch.num_processes=2", "loader.rng_types=[generator, cuda]",
                                         "training.max_steps=4"};
  auto on_cpu = sets;
  on_cpu.emplace_back("device=auto");
  const auto refused = ended(test.command(on_cpu), TestRun::environment());
  INFO(refused.output);
  CHECK(refused.status == 2);
  CHECK(refused.output.find("--set loader.rng_types=[generator, cuda]: error: rng_types lists cuda, but the training "
                            "is on the CPU\n  hint: write torch, the generator of the CPU, or set device: "
                            "cuda\n") != std::string::npos);

  const auto trained = ended(tests::on_gpu(test.command(sets)), tests::with_gpus());
  INFO(trained.output);
  REQUIRE(trained.status == 0);
  const auto first = generators_of(test, "step-000004", 0), second = generators_of(test, "step-000004", 1);
  REQUIRE(first.size() == 2);
  for (const auto& [name, state] : first) {
    INFO(name);
    CHECK((second.at(name) == state) == (name != "torch.cpu"));
  }
}

TEST_CASE("the GPU of each rank is watched", "[device]") {
  const TestRun test(kOnGpus);
  Process process(tests::on_gpu(test.command({"launch={num_processes: 2, gpu_ids: [1, 0]}", "training.max_steps=200",
                                              "checkpoint.save_steps=null", "system_metrics.interval=0.01"})),
                  tests::with_gpus(), test.path().string());
  const int status = process.wait();
  INFO(process.output());
  REQUIRE(status == 0);
  // Rank 0 has GPU 1, which the driver's library reports as busy for 74 % of the time.
  for (const auto& [name, busy] :
       {std::pair("gpu_0_utilization_percentage", 74.0), {"gpu_1_utilization_percentage", 75.0}}) {
    INFO(name);
    const auto points = runner::store::read_series(test.run_dir().string(), name, "system").value();
    REQUIRE(!points.empty());
    CHECK(points.front().value == busy);
    CHECK(points.back().value == busy);
  }
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
  CHECK(process.output().find("Exception raised from") == std::string::npos);  // the trace of a c10::Error
  const std::string run = lost.run_dir().filename().string();
  Process resumed(tests::on_gpu({"", "resume", run, "--checkpoint", "last"}), tests::with_gpus(), lost.path().string());
  const int after = resumed.wait();
  INFO(resumed.output());
  CHECK(after == 0);
  CHECK(resumed.output().find("from runs/") != std::string::npos);
  tests::check_equal_checkpoints(straight, lost, "step-000040");
}
