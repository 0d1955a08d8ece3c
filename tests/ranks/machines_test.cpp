// Several machines train one recipe. Here each is a supervisor of its own on this one; namespaces_test.cpp gives each
// its own network.

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <regex>

#include "runner/core/build_info.h"
#include "runner/core/platform/listening_socket.h"
#include "tests/support/process/equal_checkpoints.h"
#include "tests/support/process/other_build.h"
#include "tests/support/process/own_ssh.h"
#include "tests/support/process/rank_processes.h"
#include "tests/support/process/test_run.h"

namespace {

using tests::check_equal_checkpoints;
using tests::other_build;
using tests::Process;
using tests::TestRun;
using tests::wait_for_ranks;
using tests::wait_until_exited;

// Dropout shows whether a restart gives each process its own random state back. The timeout is one that nothing here
// waits for: what is lost is noticed without it.
constexpr const char* kRecipe = R"(
run_name: machines
seed: 3
model: {type: mlp, hidden: [16], dropout: 0.1}
data: {train: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adam, lr: 1.0e-2}
training: {max_steps: 40, micro_batch_size: 2, global_batch_size: 8}
checkpoint: {save_steps: 5}
logging_steps: 1
launch: {num_processes: 4, num_machines: 2, main_process_ip: 127.0.0.1, timeout: 1h}
)";
constexpr const char* kLast = "step-000040";

struct Fixture : TestRun {
  Fixture() : TestRun(kRecipe) {}

  std::unique_ptr<Process> machine(const std::vector<std::string>& flags,
                                   std::map<std::string, std::string> environment = TestRun::environment(),
                                   const std::string& program = tests::roux_program()) const {
    std::vector<std::string> command = {program, "run", "recipe.yaml", "--main-process-port", port, "--verbose"};
    command.insert(command.end(), flags.begin(), flags.end());
    return std::make_unique<Process>(command, environment, path().string());
  }

  const std::string port = std::to_string(tests::unused_port());
};

/// The undisturbed run of four processes on one machine.
const Fixture& undisturbed() {
  static const Fixture test;
  static const bool done = [] {
    const auto ended = test.run({"launch.num_machines=1"});
    INFO(ended.output);
    REQUIRE(ended.status == 0);
    return true;
  }();
  (void)done;
  return test;
}

}  // namespace

TEST_CASE("processes of two machines end where those of one do", "[ranks][machines]") {
  const Fixture test;
  std::unique_ptr<Process> first, second;
  SECTION("numbered by hand") {
    first = test.machine({"--machine-rank", "0"});
    second = test.machine({"--machine-rank", "1"});
  }
  SECTION("numbered by the environment, and the later one first") {
    auto environment = TestRun::environment();
    environment["ROUX_LAUNCH_MACHINE_RANK"] = "1";
    second = test.machine({}, environment);
    REQUIRE(second->wait_for("connecting to machine 0"));
    first = test.machine({"--machine_rank", "0"});
  }
  SECTION("numbered as they come") {
    first = test.machine({"--rdzv-backend", "c10d"});
    REQUIRE(first->wait_for("waiting for the other machines"));
    second = test.machine({"--rdzv-backend", "c10d"});
  }
  SECTION("started by ssh") {
    first = test.machine({"--hosts", "127.0.0.1,elsewhere"}, tests::with_own_ssh(test, TestRun::environment()));
  }
  CHECK(first->wait() == 0);
  INFO(first->output());
  if (second) CHECK(second->wait() == 0);
  CHECK(first->output().find("started ranks 0 to 1 of 4 as processes ") != std::string::npos);
  const std::string& others = second ? second->output() : first->output();
  CHECK(others.find("started ranks 2 to 3 of 4 as processes ") != std::string::npos);
  check_equal_checkpoints(undisturbed(), test, kLast, tests::tensors_of_ranks(4));
}

TEST_CASE("each machine gets as many processes as it has slots", "[ranks][machines]") {
  const Fixture test;
  const auto first = test.machine({"--hosts", "[{host: 127.0.0.1, slots: 3}, elsewhere]"},
                                  tests::with_own_ssh(test, TestRun::environment()));
  CHECK(first->wait() == 0);
  INFO(first->output());
  CHECK(first->output().find("started ranks 0 to 2 of 4 as processes ") != std::string::npos);
  CHECK(first->output().find("started rank 3 of 4 as process") != std::string::npos);
  check_equal_checkpoints(undisturbed(), test, kLast, tests::tensors_of_ranks(4));
}

TEST_CASE("a rank that dies on another machine ends all, or all restart to the same bits",
          "[ranks][machines][killed]") {
  const bool restart = GENERATE(false, true);
  const Fixture test;
  const std::string restarts = restart ? "2" : "0";
  const auto first = test.machine({"--machine-rank", "0", "--max-restarts", restarts});
  const auto second = test.machine({"--machine-rank", "1", "--max-restarts", restarts});
  std::size_t seen = 0, seen_there = 0;
  auto pids = wait_for_ranks(*first, seen);
  const auto there = wait_for_ranks(*second, seen_there);
  pids.insert(pids.end(), there.begin(), there.end());
  REQUIRE(first->wait_for("trained step 12\n"));
  kill(there.at(1), SIGKILL);
  const int status = first->wait(), status_there = second->wait();
  INFO(first->output() << second->output());
  CHECK(std::regex_search(first->output(), std::regex("rank 3 \\(process " + std::to_string(there.at(1)) +
                                                      " on [^)]+\\) was killed by SIGKILL")));
  for (const pid_t pid : pids) CHECK(wait_until_exited(pid));
  CHECK(status == (restart ? 0 : 1));
  CHECK(status_there == status);
  if (restart) check_equal_checkpoints(undisturbed(), test, kLast, tests::tensors_of_ranks(4));
}

TEST_CASE("a lost machine is named, and the others continue without it if they may", "[ranks][machines][killed]") {
  const bool go_on = GENERATE(false, true);
  const Fixture test;
  std::vector<std::string> flags = {"--machine-rank", "0", "--join-timeout", "0"};
  if (go_on) flags.insert(flags.end(), {"--max-restarts", "1", "--min-machines", "1"});
  const auto first = test.machine(flags);
  flags[1] = "1";
  const auto second = test.machine(flags);
  std::size_t seen = 0;
  const auto there = wait_for_ranks(*second, seen);
  REQUIRE(first->wait_for("trained step 12\n"));
  second->send(SIGKILL);
  const int status = first->wait();
  INFO(first->output());
  CHECK(std::regex_search(first->output(),
                          std::regex("lost machine 1 \\([^)]+\\) at 127.0.0.1: it closed the connection")));
  CHECK(second->wait() == 128 + SIGKILL);
  for (const pid_t pid : there) CHECK(wait_until_exited(pid));
  CHECK(status == (go_on ? 0 : 1));
  if (!go_on) return;
  CHECK(first->output().find("started 2 ranks as processes ") != std::string::npos);
  CHECK(first->output().find("max_steps 40: ") != std::string::npos);
}

TEST_CASE("a machine that loses the one that leads ends", "[ranks][machines][killed]") {
  const Fixture test;
  const auto first = test.machine({"--machine-rank", "0"}), second = test.machine({"--machine-rank", "1"});
  std::size_t seen = 0;
  const auto there = wait_for_ranks(*second, seen);
  REQUIRE(first->wait_for("trained step 7\n"));
  first->send(SIGKILL);
  CHECK(second->wait() == 1);
  INFO(second->output());
  CHECK(second->output().find("error: lost machine 0 at 127.0.0.1:" + test.port + ": ") != std::string::npos);
  for (const pid_t pid : there) CHECK(wait_until_exited(pid));
}

TEST_CASE("Ctrl-C on one machine stops all at the same step, and the same commands resume", "[ranks][machines]") {
  const Fixture test;
  {
    const auto first = test.machine({"--machine-rank", "0"}), second = test.machine({"--machine-rank", "1"});
    REQUIRE(first->wait_for("trained step 9\n"));
    second->send(SIGINT);
    CHECK(first->wait() == 75);
    CHECK(second->wait() == 75);
  }
  const auto first = test.machine({"--machine-rank", "0"}), second = test.machine({"--machine-rank", "1"});
  CHECK(first->wait() == 0);
  CHECK(second->wait() == 0);
  check_equal_checkpoints(undisturbed(), test, kLast, tests::tensors_of_ranks(4));
}

TEST_CASE("an error of a rank on another machine is reported on both", "[ranks][machines]") {
  const Fixture test;
  const auto first = test.machine({"--machine-rank", "0"});
  const auto second = test.machine({"--machine-rank", "1", "--log-dir", "/dev/null/logs"});
  CHECK(second->wait() == 1);
  CHECK(first->wait() == 1);
  INFO(first->output() << second->output());
  const std::string why = "cannot create the folder /dev/null/logs: part of the path is not a folder\n";
  CHECK(second->output().find("error: " + why) != std::string::npos);
  CHECK(std::regex_search(first->output(), std::regex("error: machine 1 \\([^)]+\\) failed: " + why)));
}

TEST_CASE("machines that do not match are reported, each with the reason", "[ranks][machines]") {
  const Fixture test;
  const auto first = test.machine({"--machine-rank", "0"});
  SECTION("number of processes") {
    const auto second = test.machine({"--machine-rank", "1", "--num-processes", "6"});
    for (const auto& machine : {first.get(), second.get()}) {
      CHECK(machine->wait() == 2);
      CHECK(std::regex_search(machine->output(),
                              std::regex("error: machines 0 \\(.+\\) and 1 \\(.+\\) expect different launches: "
                                         "num_processes 4 on num_machines 2 and num_processes 6 on num_machines 2")));
    }
  }
  SECTION("program") {
    const auto second = test.machine({"--machine-rank", "1"}, TestRun::environment(), other_build(test.path()));
    const std::string own = runner::core::source_hash();
    for (const auto& machine : {first.get(), second.get()}) {
      CHECK(machine->wait() == 2);
      INFO(machine->output());
      CHECK(std::regex_search(
          machine->output(),
          std::regex("error: machines 0 \\(.+\\) and 1 \\(.+\\) run different programs: [0-9.]+ of source " + own +
                     " and [0-9.]+ of source 0{16}\n  hint: all machines of a launch must use the same")));
    }
  }
  SECTION("recipe") {
    const auto second = test.machine({"--machine-rank", "1", "--set", "optimizer.lr=0.5"});
    for (const auto& machine : {first.get(), second.get()}) {
      CHECK(machine->wait() == 2);
      INFO(machine->output());
      CHECK(machine->output().find("ranks 0 and 2 differ in the recipe: ") != std::string::npos);
    }
  }
  CHECK_FALSE(std::filesystem::exists(test.path() / "runs"));
}

TEST_CASE("a failed rendezvous is reported with a hint", "[ranks][machines]") {
  const Fixture test;
  struct Case {
    std::vector<std::string> flags;
    const char* message;
  };
  const Case cases[] = {
      {{"--machine-rank", "1", "--timeout", "0.5s"},
       "error: cannot reach machine 0 at 127.0.0.1:[0-9]+ within .*: Connection refused\n  hint: launch.main"},
      // An address that is kept for documentation: nothing ever answers there.
      {{"--machine-rank", "1", "--timeout", "0.5s", "--main-process-ip", "192.0.2.1"},
       "error: cannot reach machine 0 at 192.0.2.1:[0-9]+ within .*: .+\n  hint: launch.main_process_ip"},
      {{"--machine-rank", "0", "--timeout", "0.5s"},
       "error: machine 1 of 2 did not connect to 127.0.0.1:[0-9]+ within .*\n  hint: run the same command on each"},
      {{"--machine-rank", "0", "--timeout", "0.5s", "--main-process-ip", "192.0.2.1"},
       "error: machine 1 of 2 did not connect to 192.0.2.1:[0-9]+ within .*\n  hint: 192.0.2.1 is not an address of "
       "this"},
      // A name that is kept for having no address.
      {{"--machine-rank", "0", "--main-process-ip", "roux.invalid"},
       "^error: no IPv4 address for roux.invalid: .+\n  hint: set launch.main_process_ip to"},
      {{"--rdzv-backend", "c10d", "--main-process-ip", "roux.invalid"},
       "^error: no IPv4 address for roux.invalid: .+\n  hint: set launch.main_process_ip to"},
      {{}, "error: with launch.num_machines 2, launch.machine_rank must be set\n  hint: "},
  };
  for (const Case& c : cases) {
    const auto machine = test.machine(c.flags);
    CHECK(machine->wait() == (c.flags.empty() ? 2 : 1));
    INFO(c.message << "\n" << machine->output());
    CHECK(std::regex_search(machine->output(), std::regex(c.message)));
  }
}

TEST_CASE("the process on the rendezvous port is named", "[ranks][machines]") {
  const Fixture test;
  const runner::core::ListeningSocket socket(static_cast<std::uint16_t>(std::stoi(test.port)));
  const auto machine = test.machine({"--machine-rank", "0"});
  CHECK(machine->wait() == 1);
  CHECK(machine->output() ==
        "error: cannot listen at port " + test.port + ": process " + std::to_string(getpid()) +
            " (tests_ranks) has it\n  hint: stop that process, or use another port on all machines\n");
}

TEST_CASE("what ranks print is kept and shown as asked for", "[ranks][machines]") {
  const Fixture test;
  const auto group = test.machine(
      {"--num-machines", "1", "--log-dir", "console", "--tee", "2", "--role", "trainer", "--enable-cpu-affinity"});
  CHECK(group->wait() == 0);
  const std::string& shown = group->output();
  INFO(shown);
  CHECK(shown.find("\ndebug: trained step 3\n") != std::string::npos);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string number = std::to_string(rank);
    std::ifstream file(test.path() / "console" / ("rank-" + number + ".log"));
    std::ostringstream kept;
    kept << file.rdbuf();
    CHECK(kept.str().find("trained step 3\n") != std::string::npos);
    CHECK((shown.find("[trainer" + number + "]: debug: trained step 3\n") != std::string::npos) == (rank > 0));
  }
}
