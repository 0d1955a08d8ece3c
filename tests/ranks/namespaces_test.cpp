// Two network namespaces as two machines: each has a network of its own, and one cable between them.

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <regex>

#include "runner/store/run_reader.h"
#include "tests/support/process/rank_processes.h"
#include "tests/support/process/test_run.h"
#include "tests/support/skip.h"

namespace {

using tests::Process;
using tests::TestRun;
using tests::wait_for_ranks;
using tests::wait_until_exited;

constexpr const char* kRecipe = R"(
run_name: hosts
seed: 5
model: {type: mlp, hidden: [16]}
data: {train: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adam, lr: 1.0e-2}
training: {max_steps: 50, micro_batch_size: 2, global_batch_size: 8}
logging_steps: 1
launch: {timeout: 1h}
)";

bool succeeds(const std::string& line) {
  Process process({"/bin/sh", "-c", line});
  return process.wait() == 0;
}

/// Two machines and the cable between them; gone with the object.
class Network {
 public:
  Network() {
    const std::string a = name(0), b = name(1), cable = "rx" + std::to_string(getpid());
    bool made = succeeds("ip netns add " + a + " && ip netns add " + b + " && ip link add " + cable + "a netns " + a +
                         " type veth peer name " + cable + "b netns " + b);
    for (int machine = 0; made && machine < 2; ++machine) {
      const std::string in = "ip -n " + name(machine) + " ";
      cable_[machine] = cable + (machine == 0 ? "a" : "b");
      made = succeeds(in + "address add " + address(machine) + "/24 dev " + cable_[machine] + " && " + in +
                      "link set " + cable_[machine] + " up && " + in + "link set lo up");
    }
    if (made) return;
    remove();
    tests::skip("two machines need network namespaces (root, and `ip` of iproute2)");
  }
  ~Network() { remove(); }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  static std::string address(int machine) { return "10.77.0." + std::to_string(machine + 1); }
  void cut() const { succeeds("ip -n " + name(1) + " link set " + cable_[1] + " down"); }

  std::unique_ptr<Process> run(const TestRun& test, int machine, const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> command = {"ip", "netns", "exec", name(machine)};
    const auto words = test.command();
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), {"--num-processes", "2", "--num-machines", "2", "--main-process-ip", address(0),
                                   "--machine-rank", std::to_string(machine), "--verbose"});
    command.insert(command.end(), flags.begin(), flags.end());
    return std::make_unique<Process>(command, TestRun::environment(), test.path().string());
  }

 private:
  static void remove() {
    for (const int machine : {0, 1}) succeeds("ip netns delete " + name(machine));
  }
  static std::string name(int machine) { return "roux" + std::to_string(getpid()) + (machine == 0 ? "a" : "b"); }

  std::string cable_[2];
};

}  // namespace

TEST_CASE("two hosts give the curve of one process", "[ranks][namespaces]") {
  const Network network;
  const TestRun alone(kRecipe), together(kRecipe);
  REQUIRE(alone.run().status == 0);
  const auto first = network.run(together, 0), second = network.run(together, 1);
  const int status = first->wait(), status_there = second->wait();
  INFO(first->output() << second->output());
  REQUIRE(status == 0);
  REQUIRE(status_there == 0);
  const auto series = [](const TestRun& test) {
    return runner::store::read_series(test.run_dir().string(), "loss", "train", -1).value();
  };
  const auto expected = series(alone), found = series(together);
  REQUIRE(expected.size() == 50);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(std::abs(found[i].value - expected[i].value) <= 1e-5 * std::abs(expected[i].value));
  }
}

TEST_CASE("a rank that dies on one host ends the other host", "[ranks][namespaces][killed]") {
  const Network network;
  const TestRun test(kRecipe);
  const std::vector<std::string> long_run = {"--set", "training.max_steps=1000000"};
  const auto first = network.run(test, 0, long_run), second = network.run(test, 1, long_run);
  std::size_t seen = 0, seen_there = 0;
  const auto here = wait_for_ranks(*first, seen), there = wait_for_ranks(*second, seen_there);
  REQUIRE(first->wait_for("trained step 5\n"));
  SECTION("by a signal") {
    kill(there.at(0), SIGKILL);
    CHECK(first->wait() == 1);
    CHECK(second->wait() == 1);
    CHECK(std::regex_search(first->output(), std::regex("error: rank 1 \\(process " + std::to_string(there.at(0)) +
                                                        " on .+\\) was killed by SIGKILL")));
  }
  SECTION("because the cable between them is cut") {
    network.cut();
    CHECK(first->wait() == 1);
    CHECK(second->wait() == 1);
    CHECK(std::regex_search(first->output(), std::regex("error: lost machine 1 \\(.+\\) at 10.77.0.2: ")));
    CHECK(std::regex_search(second->output(), std::regex("error: lost machine 0 at 10.77.0.1:29500: ")));
  }
  CHECK(wait_until_exited(here.at(0)));
  CHECK(wait_until_exited(there.at(0)));
}
