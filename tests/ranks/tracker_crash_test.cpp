// A sync that takes back what it brought over, because the run went back and on from there, dies at each of its calls
// that change the disk; and the next one, which finds what that left, dies as well. In the end each tool has what an
// undisturbed sync gives it, and nothing lies beside it. Each time it dies at some of those calls, with ROUX_TEST_ALL=1
// at all of them (tests/support/sampling.h).

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/platform/files.h"
#include "runner/store/run_writer.h"
#include "tests/support/disk/tracer.h"
#include "tests/support/for_each_in_parallel.h"
#include "tests/support/process/test_run.h"
#include "tests/support/sampling.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace {

namespace fs = std::filesystem;
using runner::store::RunWriter;
using tests::DiskEvent;
using tests::TempDir;
using tests::TestRun;

constexpr const char* kRecipe = R"(
run_name: tracked
device: cpu
model: {type: mlp, hidden: [4]}
data: {train: {type: synthetic}}
loss: mse
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 100, micro_batch_size: 2}
trackers: [csv, jsonl, wandb, dvclive, comet_ml, clearml]
)";
// TensorBoard is not among them: each life begins a file of its own there.
constexpr const char* kTrackers[] = {"csv", "jsonl", "wandb", "dvclive", "comet_ml", "clearml"};

std::vector<std::string> sync(const fs::path& run_dir, const std::string& tracker) {
  return {tests::roux_program(), "--quiet", "sync", run_dir.string(), "--tracker", tracker};
}

void sync_calmly(const fs::path& run_dir, const std::string& tracker) {
  tests::Process process(sync(run_dir, tracker));
  if (process.wait() != 0) throw std::runtime_error("the sync after it: " + process.output());
}

void log(RunWriter& run, int from, int to, double value) {
  const runner::store::MetricId loss = run.metric("loss", "train");
  for (int step = from; step <= to; ++step) run.log(step, {{{loss, value + step}}});
}

/// In `output_dir`; with every tracker as far as step 30 of a branch that was left at step 10.
fs::path prepare(const TestRun& test, const std::string& output_dir) {
  runner::store::NewRun run;
  run.output_dir = output_dir;
  run.run_name = "tracked";
  const auto resolved = test.roux({"resolve", "recipe.yaml", "--format", "json"});
  REQUIRE(resolved.status == 0);
  run.resolved_json = resolved.output;
  fs::path run_dir;
  {
    const auto first = RunWriter::create(run, runner::core::system_clock()).value();
    run_dir = first->run_dir();
    log(*first, 1, 30, 0.5);
    first->finish(runner::store::RunStatus::kStopped, "");
  }
  for (const char* tracker : kTrackers) sync_calmly(run_dir, tracker);
  const auto second = RunWriter::resume({run_dir.string(), 10, 0}, runner::core::system_clock()).value();
  log(*second, 11, 20, 0.25);
  second->finish(runner::store::RunStatus::kFinished, "");
  return run_dir;
}

/// What a tracker leaves, by path: content, or where a link leads. Folders of W&B are named after the time.
using Tree = std::multimap<std::string, std::string>;

Tree tree_of(const fs::path& run_dir) {
  static const std::regex time("[0-9]{8}_[0-9]{6}");
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(run_dir)) {
    const std::string path = fs::relative(entry.path(), run_dir).string();
    // What a kill leaves of a file that is being replaced: no tool reads it.
    if (runner::core::is_temporary_file(path)) continue;
    if (path.starts_with("run.db") || path.starts_with("annotations.db") || path.starts_with(".sync-")) continue;
    std::ostringstream content;
    if (entry.is_symlink())
      content << fs::read_symlink(entry.path());
    else if (entry.is_regular_file())
      content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    tree.emplace(std::regex_replace(path, time, "TIME"), content.str());
  }
  return tree;
}

/// Where two undisturbed syncs differ, as where the time is written, content says nothing.
std::string difference(const Tree& tree, const Tree& calm, const Tree& again) {
  std::multiset<std::string> names, calm_names;
  for (const auto& [path, content] : tree) names.insert(path);
  for (const auto& [path, content] : calm) calm_names.insert(path);
  std::vector<std::string> found;
  const auto differing = [&found](const auto& some, const auto& others, const char* what) {
    for (const std::string& name : some) {
      if (some.count(name) > others.count(name)) found.push_back(name + what);
    }
  };
  differing(names, calm_names, " is left");
  differing(calm_names, names, " is missing");
  if (!found.empty()) return tests::joined(found);
  for (auto a = tree.begin(), b = calm.begin(), c = again.begin(); b != calm.end(); ++a, ++b, ++c) {
    if (b->second == c->second && a->second != b->second) return a->first + " holds something else";
  }
  return "";
}

/// Calls, counted from the lock on, after which something changed below the run's folder; some of each kind of change.
std::vector<int> drawn_changes(const tests::Traced& traced, bool removals_only, std::mt19937& random) {
  std::map<int, std::string> changes;
  for (const DiskEvent& event : traced.events) {
    const bool removes = event.kind == DiskEvent::Kind::kUnlink || event.kind == DiskEvent::Kind::kRemoveDir ||
                         event.kind == DiskEvent::Kind::kRename || event.kind == DiskEvent::Kind::kMakeDir;
    if (event.calls_before > 0 && (removes || !removals_only))
      changes.try_emplace(event.calls_before, std::to_string(static_cast<int>(event.kind)));
  }
  std::vector<int> calls;
  std::vector<std::string> kinds;
  for (const auto& [call, kind] : changes) {
    calls.push_back(call);
    kinds.push_back(kind);
  }
  std::vector<int> drawn;
  for (const int point : tests::drawn_points(kinds, random))
    drawn.push_back(calls.at(static_cast<std::size_t>(point) - 1));
  return drawn;
}

std::optional<tests::Traced> trace_sync(const fs::path& run_dir, const std::string& tracker, tests::Injection injection,
                                        bool recording) {
  tests::TraceOptions options;
  options.injection = injection;
  options.begin = {.call = "openat", .path_part = ".sync-"};
  if (recording) options.record_below = run_dir.string();
  return tests::trace(sync(run_dir, tracker), options);
}

fs::path copy_of(const fs::path& run_dir, const TempDir& into) {
  const fs::path copy = fs::path(into.path()) / run_dir.filename();
  fs::copy(run_dir, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  return copy;
}

}  // namespace

TEST_CASE("a sync that is killed at any change it makes, twice, gives each tool the same in the end",
          "[ranks][crash]") {
  const TestRun test(kRecipe);
  std::mt19937 random(tests::seed());
  const TempDir prepared(TempDir::On::kMemory);
  const fs::path run_dir = prepare(test, prepared.path());
  for (const std::string tracker : kTrackers) {
    CAPTURE(tracker);
    const TempDir calm_dir(TempDir::On::kMemory), again_dir(TempDir::On::kMemory);
    const fs::path calm_run = copy_of(run_dir, calm_dir), again_run = copy_of(run_dir, again_dir);
    const auto traced = trace_sync(calm_run, tracker, {}, true);
    if (!traced) tests::skip("ptrace is not permitted");
    REQUIRE(traced->status == 0);
    sync_calmly(again_run, tracker);
    const Tree calm = tree_of(calm_run), again = tree_of(again_run);
    REQUIRE(difference(again, calm, again) == "");

    std::mutex mutex;
    std::set<std::set<std::string>> seen;  // names that a kill left: what the next sync meets
    std::atomic<int> kills = 0;
    const std::vector<int> first = drawn_changes(*traced, false, random);
    REQUIRE(!first.empty());
    const auto problems = tests::for_each_in_parallel(first, [&](int first_call) -> std::string {
      std::mt19937 its_random(tests::seed() + static_cast<unsigned>(first_call));
      const tests::Injection injection = {tests::Injection::Kind::kKillAfter, first_call};
      const TempDir left_dir(TempDir::On::kMemory);
      const fs::path left = copy_of(run_dir, left_dir);
      const auto killed = trace_sync(left, tracker, injection, false);
      kills += killed->injected;
      std::set<std::string> names;
      for (const auto& [path, content] : tree_of(left)) names.insert(path + (content.empty() ? "" : " not empty"));
      std::vector<int> second = {0};
      if (const std::lock_guard lock(mutex); seen.insert(names).second) {
        const TempDir dir(TempDir::On::kMemory);
        const auto next = trace_sync(copy_of(left, dir), tracker, {}, true);
        for (const int call : drawn_changes(*next, true, its_random)) second.push_back(call);
      }
      for (const int call : second) {
        const TempDir dir(TempDir::On::kMemory);
        const fs::path run = copy_of(left, dir);
        if (call > 0) kills += trace_sync(run, tracker, {tests::Injection::Kind::kKillAfter, call}, false)->injected;
        sync_calmly(run, tracker);
        if (const std::string found = difference(tree_of(run), calm, again); !found.empty()) {
          return killed->injected_call + ", then call " + std::to_string(call) + ": " + found;
        }
      }
      return "";
    });
    std::printf("sync to %s: %d kills\n", tracker.c_str(), kills.load());
    std::fflush(stdout);
    INFO(tests::joined(problems));
    CHECK(problems.empty());
    CHECK(kills >= static_cast<int>(first.size()));
  }
}
