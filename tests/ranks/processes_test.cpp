// Several processes train one recipe: the curve of one process, whatever becomes of them on the way.

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "runner/core/clock.h"
#include "runner/core/platform/listening_socket.h"
#include "runner/store/run_reader.h"
#include "tests/support/disk/file_events.h"
#include "tests/support/process/equal_checkpoints.h"
#include "tests/support/process/rank_processes.h"
#include "tests/support/process/ranks_test_run.h"
#include "tests/support/sampling.h"

namespace {

namespace store = runner::store;

using Fixture = tests::RanksTestRun;
using tests::check_equal_checkpoints;
using tests::check_killed_rank_is_named;
using tests::Process;
using tests::processes;
using tests::tensors_of_ranks;
using tests::TestRun;
using tests::wait_for_ranks;
using tests::wait_until_exited;
using tests::ranks_recipes::kGpt;
using tests::ranks_recipes::kTable;

// With dropout, which each process draws for itself.
constexpr const char* kKilled = R"(
run_name: ranks
seed: 7
model: {type: gpt, n_layer: 1, n_head: 2, n_embd: 32, dropout: 0.1}
data:
  train: {type: text, path: corpus.txt, split: ":90%", max_seq_len: 16}
  val: {type: text, path: corpus.txt, split: "90%:", max_seq_len: 16}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-3}
training: {max_steps: 40, micro_batch_size: 2, global_batch_size: 8}
eval: {eval_steps: 10}
checkpoint: {save_steps: 3, save_total_limit: 3}
logging_steps: 1
)";
constexpr const char* kLast = "step-000040";

// From a rank's death, or from the end of launch.timeout, to the end of all; and to the end of the other ranks.
constexpr double kNoticedWithin_s = 5, kOthersEndWithin_s = 2;

/// The undisturbed run of kKilled by this many processes, trained once.
const Fixture& undisturbed(int count) {
  static std::map<int, Fixture> runs;
  const auto [found, is_new] = runs.try_emplace(count, kKilled);
  if (is_new) {
    const auto ended = found->second.run({processes(count)});
    INFO(ended.output);
    REQUIRE(ended.status == 0);
  }
  return found->second;
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin_ = Clock::now();
};

/// The phase of a step that the last line of a rank's log names; "" when it names none.
std::string last_phase(const Fixture& test, int rank) {
  std::ifstream log(test.run_dir() / "logs" / ("rank-" + std::to_string(rank) + ".log"));
  std::string line, last;
  while (std::getline(log, line)) last = line;
  std::smatch found;
  return std::regex_search(last, found, std::regex(": (forward|backward|exchange)$")) ? found[1].str() : "";
}

/// The store that ranks meet at, where no supervisor hosts it.
class Store {
 public:
  Store()
      : descriptor_(dup(socket_.descriptor())),
        host_({tests::roux_program(), "host-store", std::to_string(descriptor_), std::to_string(socket_.port())}) {
    close(descriptor_);  // which the host has inherited
  }

  /// One of two ranks: the second one of its host, or the only one there.
  std::unique_ptr<Process> start(const TestRun& test, int rank, std::vector<std::string> settings,
                                 bool alone_on_host = false) const {
    auto environment = TestRun::environment();
    environment.insert({{"RANK", std::to_string(rank)},
                        {"WORLD_SIZE", "2"},
                        {"LOCAL_RANK", std::to_string(alone_on_host ? 0 : rank)},
                        {"LOCAL_WORLD_SIZE", alone_on_host ? "1" : "2"},
                        {"MASTER_ADDR", "127.0.0.1"},
                        {"MASTER_PORT", std::to_string(socket_.port())},
                        {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
    settings.push_back(processes(2));
    return std::make_unique<Process>(test.command(settings), environment, test.path().string());
  }

 private:
  runner::core::ListeningSocket socket_;
  int descriptor_;
  Process host_;
};

}  // namespace

TEST_CASE("the curve does not depend on the number of processes", "[ranks][processes]") {
  const char* recipe = GENERATE(kGpt, kTable);
  const Fixture& alone = tests::trained_alone(recipe);
  const auto losses = alone.series("loss"), rates = alone.series("lr");
  REQUIRE(losses.size() == 50);
  for (const int count : {2, 3, 4}) {
    CAPTURE(count);
    const Fixture together(recipe);
    const auto ended = together.run({processes(count)});
    INFO(ended.output);
    REQUIRE(ended.status == 0);
    const auto theirs = together.series("loss"), their_rates = together.series("lr");
    REQUIRE(theirs.size() == losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CAPTURE(i);
      CHECK(theirs[i].step == losses[i].step);
      CHECK(std::abs(theirs[i].value - losses[i].value) <= 1e-5 * std::abs(losses[i].value));
      CHECK(their_rates[i].value == rates[i].value);
    }
    const std::vector<std::string> of_table = {"val/loss", "val/mse"};
    const std::vector<std::string> of_text = {"val/loss", "val/perplexity", "val/accuracy"};
    for (const std::string& name : recipe == kTable ? of_table : of_text) {
      CAPTURE(name);
      const auto expected = alone.series(name), found = together.series(name);
      REQUIRE(found.size() == expected.size());
      // Before the first step the weights are the same to the last bit: figures of samples that cannot be shared evenly
      // are exact.
      CHECK(found.front().step == 0);
      CHECK(std::abs(found.front().value - expected.front().value) <= 1e-12 * expected.front().value);
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(std::abs(found[i].value - expected[i].value) <= 1e-5 * std::abs(expected[i].value));
      }
    }
    CHECK(together.series("loss").back().step == 50);
    CHECK(std::filesystem::exists(together.run_dir() / "logs/rank-1.log"));
  }
}

TEST_CASE("who reads a batch, and how it is split, does not change the curve", "[ranks][processes]") {
  const std::vector<std::string> settings =
      GENERATE(std::vector<std::string>{"loader.dispatch_batches=true", processes(2)},
               std::vector<std::string>{"loader.dispatch_batches=true", "loader.num_workers=0", processes(3)},
               std::vector<std::string>{"loader.split_batches=true", "training.global_batch_size=16", processes(2)});
  CAPTURE(settings.front());
  const Fixture& alone = tests::trained_alone(kTable);
  const Fixture together(kTable);
  const auto ended = together.run(settings);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  for (const char* name : {"loss", "val/loss", "val/mse"}) {
    const auto expected = alone.series(name), found = together.series(name);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(std::abs(found[i].value - expected[i].value) <= 1e-5 * std::abs(expected[i].value));
    }
  }
}

TEST_CASE("running statistics follow the samples of all processes", "[ranks][processes]") {
  // No bias before a norm: its gradient is rounding alone, which adam makes as large as any other.
  const std::vector<std::string> normed = {
      "model={type: sequential, layers: [{type: linear, out_features: 8, bias: false}, {type: batch_norm, momentum: "
      "0.3}, {type: residual, body: [{type: relu}, {type: linear, out_features: 8, bias: false}, {type: "
      "batch_norm}]}, {type: linear, out_features: 1}]}",
      "loader.drop_last=true"};
  const Fixture alone(kTable);
  const auto one = alone.run(normed);
  INFO(one.output);
  REQUIRE(one.status == 0);
  for (const int count : {2, 3}) {
    for (const bool of_first : {false, true}) {
      CAPTURE(count, of_first);
      const Fixture together(kTable);
      auto settings = normed;
      settings.insert(settings.end(), {processes(count), "ddp.bucket_cap_mb=0.0001"});
      if (of_first) settings.emplace_back("ddp.broadcast_buffers=true");
      const auto ended = together.run(settings);
      INFO(ended.output);
      REQUIRE(ended.status == 0);
      for (const char* name : {"loss", "val/loss"}) {
        if (of_first && name == std::string("val/loss")) continue;  // judged by other statistics
        const auto expected = alone.series(name), found = together.series(name);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(std::abs(found[i].value - expected[i].value) <= 1e-5 * std::abs(expected[i].value));
        }
      }
    }
  }
}

TEST_CASE("each process writes a profile of its own, and that of the first is shown", "[ranks][processes]") {
  const Fixture test(kTable);
  const auto ended = test.run({processes(2), "training.max_steps=4",
                               "profiler={activities: [cpu], schedule: {wait: 1, warmup: 1, active: 2}}"});
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  std::map<std::string, int> traces;
  for (const auto& entry : std::filesystem::directory_iterator(test.run_dir() / "profile")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".pt.trace.json")) ++traces[name.substr(0, name.find('.'))];
  }
  CHECK(traces == std::map<std::string, int>{{"rank-0", 1}, {"rank-1", 1}});
  const auto shown = test.roux({"profile", "show", "last"});
  CHECK(shown.status == 0);
  CHECK(shown.output.find("trace rank-0.") != std::string::npos);
  CHECK(shown.output.find("exchange") != std::string::npos);
}

TEST_CASE("processes that share random numbers stand at the same place", "[ranks][processes]") {
  const Fixture test(kKilled);
  const auto ended = test.run({processes(2), "training.max_steps=6", "loader.rng_types=[generator, torch]"});
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  const auto generator = [&](int rank) {
    return test.saved("step-000006", "random_states_" + std::to_string(rank) + ".safetensors");
  };
  CHECK((generator(0).size() > 100));
  CHECK((generator(0) == generator(1)));
}

TEST_CASE("figures are exact where all samples are one batch", "[ranks][processes]") {
  // No step is made in between, so that the weights are the same to the last bit.
  const std::vector<std::string> still = {"optimizer.lr=1e-30", "training.max_steps=1", "eval.micro_batch_size=1000"};
  const Fixture alone(kGpt);
  REQUIRE(alone.run(still).status == 0);
  for (const int count : {2, 3, 4}) {
    CAPTURE(count);
    const Fixture together(kGpt);
    auto settings = still;
    settings.push_back(processes(count));
    const auto ended = together.run(settings);
    INFO(ended.output);
    REQUIRE(ended.status == 0);
    for (const char* name : {"val/loss", "val/perplexity", "val/accuracy"}) {
      CAPTURE(name);
      const auto expected = alone.series(name), found = together.series(name);
      REQUIRE(found.size() == expected.size());
      CHECK(std::abs(found.front().value - expected.front().value) <= 1e-12 * expected.front().value);
    }
  }
}

TEST_CASE("processes that are killed again and again end where undisturbed ones do", "[ranks][processes][killed]") {
  const int count = GENERATE(2, 4);
  CAPTURE(count);
  const Fixture& straight = undisturbed(count);
  const Fixture killed(kKilled);

  std::mt19937 random(tests::seed());
  Process process(killed.verbose({processes(count), "launch.max_restarts=2"}), TestRun::environment(),
                  killed.path().string());
  std::size_t seen = 0;
  std::vector<pid_t> all;
  // Once a rank anywhere in a step, once the first rank while it saves, which is when nothing of theirs may be lost.
  for (const int life : {0, 1}) {
    const auto pids = wait_for_ranks(process, seen);
    REQUIRE(pids.size() == static_cast<std::size_t>(count));
    all.insert(all.end(), pids.begin(), pids.end());
    const auto step = 5 + 12 * life + static_cast<int>(random() % 6);
    const char* phases[] = {"forward", "backward", "exchange"};
    const std::string moment = life == 0 ? "step " + std::to_string(step) + ": " + phases[random() % 3]
                                         : "saving step " + std::to_string(step / 3 * 3) + "\n";
    CAPTURE(life, moment);
    REQUIRE(process.wait_for(moment));
    const Stopwatch since_death;
    kill(pids[life == 0 ? 1 + random() % (pids.size() - 1) : 0], SIGKILL);
    for (const pid_t pid : pids) CHECK(wait_until_exited(pid));
    CHECK(since_death.seconds() <= kOthersEndWithin_s);
  }
  const auto pids = wait_for_ranks(process, seen);
  all.insert(all.end(), pids.begin(), pids.end());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  for (const pid_t pid : all) CHECK(wait_until_exited(pid));
  check_equal_checkpoints(straight, killed, kLast, tensors_of_ranks(count));
}

TEST_CASE("a rank that dies is named, no process is left behind, and the same command resumes", "[ranks][processes]") {
  const Fixture& straight = undisturbed(2);
  const Fixture killed(kKilled);
  {
    Process process(killed.verbose({processes(2)}), TestRun::environment(), killed.path().string());
    std::size_t seen = 0;
    const auto pids = wait_for_ranks(process, seen);
    REQUIRE(process.wait_for("trained step 11\n"));
    kill(pids.at(1), SIGKILL);
    check_killed_rank_is_named(process, 1, pids.at(1));
    for (const pid_t pid : pids) CHECK(wait_until_exited(pid));
  }
  CHECK(store::list_runs((killed.path() / "runs").string(), runner::core::system_clock()).at(0).status ==
        store::RunStatus::kCrashed);
  const auto ended = killed.run({processes(2)});
  INFO(ended.output);
  CHECK(ended.status == 0);
  check_equal_checkpoints(straight, killed, kLast, tensors_of_ranks(2));
}

TEST_CASE("a rank that is killed in any phase of a step ends the others in two seconds", "[ranks][processes]") {
  const std::string phase = GENERATE("forward", "backward", "exchange");
  CAPTURE(phase);
  const Fixture test(kKilled);
  Process process(test.verbose({processes(2), "training.max_steps=100000", "eval.eval_steps=100000",
                                "checkpoint.save_steps=100000"}),
                  TestRun::environment(), test.path().string());
  std::size_t seen = 0;
  const auto pids = wait_for_ranks(process, seen);
  REQUIRE(process.wait_for("trained step 3\n"));
  tests::FileEvents events(test.run_dir() / "logs");
  int lines = 0;
  if (phase == "exchange") {  // where it waits for the other one
    tests::stop(pids.at(0));
    while (last_phase(test, 1) != phase) REQUIRE(events.wait_for(++lines));
  }
  for (tests::stop(pids.at(1)); last_phase(test, 1) != phase; tests::stop(pids.at(1))) {
    kill(pids.at(1), SIGCONT);
    REQUIRE(events.wait_for(++lines));
  }
  const Stopwatch since_death;
  kill(pids.at(1), SIGKILL);
  kill(pids.at(0), SIGCONT);
  CHECK(wait_until_exited(pids.at(0)));
  CHECK(since_death.seconds() <= kOthersEndWithin_s);
  check_killed_rank_is_named(process, 1, pids.at(1));
  CHECK(since_death.seconds() <= kNoticedWithin_s);
}

TEST_CASE("a rank that hangs is named by those that wait for it", "[ranks][processes]") {
  const Fixture test(kKilled);
  // Long enough for a busy machine to start in.
  Process process(test.verbose({processes(2), "launch.timeout=15s"}), TestRun::environment(), test.path().string());
  std::size_t seen = 0;
  const auto pids = wait_for_ranks(process, seen);
  REQUIRE(process.wait_for("trained step 8\n"));
  const Stopwatch since_hanging;
  kill(pids.at(1), SIGSTOP);
  const int status = process.wait();
  CHECK(since_hanging.seconds() <= 15 + kNoticedWithin_s);
  INFO(process.output());
  CHECK(status == 1);
  CHECK(std::regex_search(process.output(),
                          std::regex("error: rank 0: all_(reduce|gather) of .* waited 15.* s: rank 1 \\(process " +
                                     std::to_string(pids.at(1)) + " on .*\\) does not respond")));
  for (const pid_t pid : pids) CHECK(wait_until_exited(pid));
}

TEST_CASE("each host saves on a disk of its own, and resumes from there", "[ranks][processes]") {
  const Fixture here(kKilled), there(kKilled);
  for (const int last : {6, 12}) {  // the second time from what was saved
    const Store store;
    std::vector<std::string> settings = {"training.max_steps=" + std::to_string(last),
                                         "checkpoint.save_on_each_node=true"};
    if (last == 12)
      settings.push_back("checkpoint.resume_from_checkpoint=runs/" + here.run_dir().filename().string() +
                         "/checkpoints/step-000006");
    const auto first = store.start(here, 0, settings, true), second = store.start(there, 1, settings, true);
    const int status = first->wait(), their_status = second->wait();
    INFO(first->output() << second->output());
    REQUIRE(status == 0);
    REQUIRE(their_status == 0);
  }
  check_equal_checkpoints(here, there, "step-000012", {"model", "optimizer", "random_states_1"});
  CHECK_FALSE(std::filesystem::exists(there.run_dir() / "run.db"));
}

TEST_CASE("ranks that another launcher starts meet at the store, and have to be the same", "[ranks][processes]") {
  const Fixture test(kKilled);
  const Store store;
  const auto start = [&](int rank, const std::vector<std::string>& settings) {
    return store.start(test, rank, settings);
  };
  SECTION("to train") {
    const auto first = start(0, {"training.max_steps=3"}), second = start(1, {"training.max_steps=3"});
    CHECK(first->wait() == 0);
    CHECK(second->wait() == 0);
    INFO(first->output());
    CHECK(first->output().find("max_steps 3: 3 steps") != std::string::npos);
    CHECK(second->output().find("max_steps 3: 3 steps") == std::string::npos);
  }
  SECTION("or to refuse") {
    const auto first = start(0, {}), second = start(1, {"optimizer.lr=0.5"});
    for (const auto& rank : {first.get(), second.get()}) {
      CHECK(rank->wait() == 2);
      INFO(rank->output());
      CHECK(rank->output().find("error: ranks 0 and 1 differ in the recipe: ") != std::string::npos);
    }
    CHECK_FALSE(std::filesystem::exists(test.path() / "runs"));
  }
}

TEST_CASE("an error of a single rank is reported with its message", "[ranks][processes]") {
  const Fixture test(R"(
run_name: ranks
model: {type: gpt, n_layer: 1, n_head: 2, n_embd: 16}
data: {train: {type: tokens, path: ids.bin, vocab_size: 100, max_seq_len: 8}}
loss: cross_entropy
optimizer: {type: sgd, lr: 1.0e-2}
loader: {shuffle: false}
training: {max_steps: 20, micro_batch_size: 1, global_batch_size: 2}
launch: {num_processes: 2}
)");
  std::string ids;  // of 2 bytes, the lower one first; window 5, which the second process takes, has one too large
  for (int i = 0; i < 400; ++i) ids += std::string{static_cast<char>(i == 44 ? 101 : i % 100), '\0'};
  test.write("ids.bin", ids);
  const auto ended = test.run();
  INFO(ended.output);
  CHECK(ended.status == 1);
  CHECK(std::regex_search(ended.output,
                          std::regex("error: rank 1 \\(process [0-9]+\\) failed with exit status 1: .*101")));
}

TEST_CASE("a signal stops all ranks at the same step, and the same command resumes", "[ranks][processes]") {
  const int signal = GENERATE(SIGTERM, SIGINT, SIGHUP);
  CAPTURE(signal);
  const Fixture& straight = undisturbed(2);
  const Fixture stopped(kKilled);
  {
    // Ctrl-C reaches the whole process group of the terminal.
    auto command = stopped.verbose({processes(2)});
    command.insert(command.begin(), "/usr/bin/setsid");
    Process process(command, TestRun::environment(), stopped.path().string());
    REQUIRE(process.wait_for("trained step 7\n"));
    kill(signal == SIGINT ? -process.pid() : process.pid(), signal);
    const int status = process.wait();
    INFO(process.output());
    CHECK(status == 75);
  }
  CHECK(store::list_runs((stopped.path() / "runs").string(), runner::core::system_clock()).at(0).status ==
        store::RunStatus::kStopped);
  const auto ended = stopped.run({processes(2)});
  INFO(ended.output);
  CHECK(ended.status == 0);
  check_equal_checkpoints(straight, stopped, kLast, tensors_of_ranks(2));
}
