// Several processes that work with a trained model: one that dies ends the others, and is named.

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process/rank_processes.h"
#include "tests/support/process/ranks_test_run.h"

namespace {

using tests::check_killed_rank_is_named;
using tests::Process;
using tests::TestRun;
using tests::wait_for_ranks;
using tests::wait_until_exited;

// Enough batches for work to last as long as a test needs.
constexpr const char* kRecipe = R"(
run_name: ranks
model: {type: mlp, hidden: [8]}
data:
  train: {type: synthetic, task: spirals, num_samples: 100}
  val: {type: synthetic, task: spirals, num_samples: 300000}
loss: cross_entropy
optimizer: {type: sgd, lr: 1.0e-2}
training: {max_steps: 1, micro_batch_size: 4}
eval: {micro_batch_size: 1}
checkpoint: {save_steps: 1}
)";

constexpr const char* kTexts = R"(
run_name: ranks
model: {type: gpt, n_layer: 1, n_head: 2, n_embd: 32}
data: {train: {type: text, path: corpus.txt, max_seq_len: 64}}
loss: cross_entropy
optimizer: {type: sgd, lr: 1.0e-2}
training: {max_steps: 1, micro_batch_size: 4}
checkpoint: {save_steps: 1}
)";

/// `roux COMMAND recipe.yaml --num-processes 2 ...`
std::vector<std::string> two_processes(const std::string& command, std::vector<std::string> more) {
  more.insert(more.begin(), {tests::roux_program(), command, "recipe.yaml", "--num-processes", "2"});
  return more;
}

/// Kills the second rank once the output says that work is going on.
void check_killed(const TestRun& test, const std::vector<std::string>& command, const std::string& when) {
  Process process(command, TestRun::environment(), test.path().string());
  std::size_t seen = 0;
  const auto pids = wait_for_ranks(process, seen);
  REQUIRE(pids.size() == 2);
  if (!when.empty()) REQUIRE(process.wait_for(when));
  kill(pids.at(1), SIGKILL);
  check_killed_rank_is_named(process, 1, pids.at(1));
  for (const pid_t pid : pids) CHECK(wait_until_exited(pid));
}

}  // namespace

TEST_CASE("a rank that dies while it evaluates, predicts or starts is named", "[ranks][work]") {
  const TestRun test(kRecipe);
  const auto trained = test.run({"eval=null", "~data.val"});
  INFO(trained.output);
  REQUIRE(trained.status == 0);
  SECTION("evaluating") {
    const std::vector<std::string> profiled = {"--profile", "traces", "--set",
                                               "profiler.schedule={wait: 0, warmup: 0}"};
    check_killed(test, two_processes("eval", profiled), "profile of ");
  }
  SECTION("predicting") {
    check_killed(test, two_processes("predict", {}), "\"index\": 20,");
    check_killed(test, two_processes("predict", {"--output", "rows.csv"}), "");
    CHECK_FALSE(std::filesystem::exists(test.path() / "rows.csv"));
  }
  SECTION("starting") { check_killed(test, two_processes("eval", {}), ""); }
}

TEST_CASE("a rank that dies while it generates is named, and Ctrl-C keeps what was made", "[ranks][work]") {
  const TestRun test(kTexts);
  test.write_corpus(2'000);
  std::string prompts;
  for (int i = 0; i < 5'000; ++i) prompts += "line " + std::to_string(i) + "\n";
  test.write("prompts.txt", prompts);
  REQUIRE(test.run().status == 0);
  auto command = two_processes("generate", {"--prompts", "prompts.txt", "--max-new-tokens", "60"});
  const std::string first = "{\"prompt\": \"line 1\"";  // of the second rank
  SECTION("dies") { check_killed(test, command, first); }
  SECTION("is interrupted") {
    Process process(command, TestRun::environment(), test.path().string());
    std::size_t seen = 0;
    const auto pids = wait_for_ranks(process, seen);
    REQUIRE(process.wait_for(first));
    process.send(SIGINT);
    const int status = process.wait();
    INFO(process.output());
    CHECK(status == 130);
    CHECK(process.output().find("\"finish_reason\": \"interrupted\"") != std::string::npos);
    CHECK(process.output().find("\"line 4999\"") == std::string::npos);
    CHECK(process.output().find("error") == std::string::npos);
    CHECK(process.output().find("interrupted by SIGINT: ") != std::string::npos);
    for (const pid_t pid : pids) CHECK(wait_until_exited(pid));
  }
}

TEST_CASE("a signal ends one process or all ranks in the same way, and leaves no draft", "[ranks][work]") {
  const TestRun test(kRecipe);
  REQUIRE(test.run({"eval=null", "~data.val"}).status == 0);
  const int processes = GENERATE(1, 2), signal = GENERATE(SIGTERM, SIGINT, SIGHUP);
  const bool to_file = GENERATE(false, true);
  CAPTURE(processes, signal, to_file);
  auto command = two_processes("predict", {});
  command.back() = std::to_string(processes);
  if (to_file) command.insert(command.end(), {"--output", "rows.jsonl"});
  Process process(command, TestRun::environment(), test.path().string());
  std::size_t seen = 0;
  const auto pids = processes > 1 ? wait_for_ranks(process, seen) : std::vector<pid_t>();
  const auto has_draft = [&] {
    const std::filesystem::directory_iterator folder(test.path());
    return std::any_of(begin(folder), end(folder),
                       [](const auto& entry) { return entry.path().filename().string().starts_with("rows.jsonl"); });
  };
  if (!to_file) REQUIRE(process.wait_for("\"index\": 20,"));
  while (to_file && !has_draft()) std::this_thread::yield();
  process.send(signal);
  CHECK(process.wait() == 128 + signal);
  INFO(process.output());
  const std::string what = to_file ? ": rows.jsonl was not written\n" : ": the output is not complete\n";
  const std::string said = "interrupted by SIG" + std::string(sigabbrev_np(signal)) + what;
  const std::size_t found = process.output().find(said);
  CHECK(found != std::string::npos);
  CHECK(process.output().find("interrupted", found + 1) == std::string::npos);
  CHECK(process.output().find("error") == std::string::npos);
  CHECK_FALSE(has_draft());
  for (const pid_t pid : pids) CHECK(wait_until_exited(pid));
}

TEST_CASE("what each rank would say is said once", "[ranks][work]") {
  const TestRun test(kRecipe);
  REQUIRE(test.run({"eval=null", "~data.val"}).status == 0);
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--data", "test"}, "error: no data set is called \"test\""},
           {{"--checkpoint", "step-000007"}, "error: there is no checkpoint \"step-000007\""},
           {{"--set", "model.hidden=[9]"}, "error: model.hidden[0] is 9, but the weights were trained with 8"}}) {
    CAPTURE(message);
    auto command = two_processes("eval", words);
    command.erase(command.begin());
    const auto ended = test.roux(command);
    INFO(ended.output);
    CHECK(ended.status == 2);
    const std::size_t found = ended.output.find(message);
    CHECK(found != std::string::npos);
    CHECK(ended.output.find(message, found + 1) == std::string::npos);
  }
}
