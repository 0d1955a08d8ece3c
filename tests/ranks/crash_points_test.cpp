// A program that does what a training does to its run's folder - metrics, a save, a rotation - dies at each of its
// calls to the kernel, is refused each of them, or loses power after each. Whatever happens, at least as many
// checkpoints can be restored as before, no metric of one of them is missing, and the run goes on. Each time it is
// tried at some of those points, with ROUX_TEST_ALL=1 at all of them (tests/support/sampling.h).

#include <signal.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/clock.h"
#include "runner/store/run_reader.h"
#include "tests/support/disk/crash_disk.h"
#include "tests/support/disk/tracer.h"
#include "tests/support/for_each_in_parallel.h"
#include "tests/support/paths.h"
#include "tests/support/process/process.h"
#include "tests/support/sampling.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace {

namespace artifact = runner::artifact;
namespace fs = std::filesystem;
namespace store = runner::store;

using tests::CrashDisk;
using tests::DiskEvent;
using tests::for_each_in_parallel;
using tests::Injection;
using tests::joined;
using tests::trace;
using tests::Traced;

std::string program() { return tests::build_dir() + "/bin/save_and_rotate"; }

/// What is done in the window, over what was there before.
struct Scenario {
  const char* name;
  const char* how;
  int steps;
  int restorable;             ///< before the window
  std::int64_t newest, then;  ///< newest step before the window and after it
  bool shared = false;        ///< run.db lies where it keeps a rollback journal instead of a write-ahead log
};

constexpr Scenario kScenarios[] = {
    {"a new step, after another in the same process", "go-on", 50, 2, 40, 50},
    {"a step that is there is saved again by a resume", "again", 30, 2, 30, 30},
    {"the first save of a new run", "new", 10, 0, -1, 10},
    {"a new step, with run.db on a shared file system", "go-on", 50, 2, 40, 50, true},
};

std::vector<std::string> command(const Scenario& scenario, const std::string& output_dir, const std::string& how,
                                 int steps) {
  std::vector<std::string> words = {program(), output_dir, how, std::to_string(steps)};
  if (scenario.shared) words.emplace_back("shared");
  return words;
}
std::vector<std::string> command(const Scenario& scenario, const std::string& output_dir) {
  return command(scenario, output_dir, scenario.how, scenario.steps);
}

/// Leaves a run with steps 20 and 30 behind, or nothing where the window makes the run.
void prepare(const Scenario& scenario, const std::string& output_dir) {
  if (scenario.restorable == 0) return;
  tests::Process process(command(scenario, output_dir, "new", 30));
  if (process.wait() != 0) throw std::runtime_error("cannot prepare: " + process.output());
}

std::optional<std::string> only_run(const std::string& output_dir) {
  for (const auto& entry : fs::directory_iterator(output_dir)) {
    if (entry.is_directory()) return entry.path().string();
  }
  return std::nullopt;
}

/// "" or the step along a branch (-1: the newest) that is missing or there twice.
std::string gap_in_metrics(const std::string& run_dir, std::int64_t until, std::int64_t branch = -1) {
  const auto points = store::read_series(run_dir, "loss", "train", branch);
  if (!points) return "no metrics: " + points.failure().message;
  std::int64_t expected = 0;
  for (const store::SeriesPoint& point : points.value()) {
    if (++expected != point.step) return "metrics: step " + std::to_string(expected) + " is missing or there twice";
    if (point.value != 1.0 / static_cast<double>(point.step)) return "metrics: another value at a step";
  }
  return expected >= until ? "" : "metrics end at step " + std::to_string(expected);
}

struct Found {
  int restorable = 0;
  std::int64_t newest = -1, branch = -1;
  std::string problem;
};

/// What a resume would find.
Found find_checkpoints(const std::string& run_dir) {
  Found found;
  const std::string folder = run_dir + "/checkpoints";
  for (const artifact::CheckpointInfo& info : artifact::list_checkpoints(folder)) {
    found.restorable += artifact::verify_checkpoint(info.path).ok();
  }
  std::vector<std::string> skipped;
  if (const auto newest = artifact::newest_verified(folder, skipped)) {
    found.newest = newest->step;
    found.branch = newest->manifest.fields.branch;
    const auto file = artifact::SafetensorsReader::open(newest->path + "/model.safetensors");
    const artifact::TensorBytes* bias = file ? file.value()->find("bias") : nullptr;
    if (bias == nullptr || *static_cast<const float*>(bias->data) != static_cast<float>(newest->step)) {
      found.problem = "the newest checkpoint holds other weights than it says";
    }
  }
  if (!skipped.empty()) found.problem = "skipped " + skipped.front();
  return found;
}

/// The next process finds its way. `committed`: the save had returned, so its checkpoint must be the newest.
std::string look_and_go_on(const Scenario& scenario, const std::string& output_dir, bool committed) {
  const std::optional<std::string> run_dir = only_run(output_dir);
  if (run_dir) {
    const Found found = find_checkpoints(*run_dir);
    if (!found.problem.empty()) return found.problem;
    if (found.restorable < scenario.restorable) return std::to_string(found.restorable) + " checkpoints are left";
    if (found.newest != scenario.then && (committed || found.newest != scenario.newest)) {
      return "the newest checkpoint is step " + std::to_string(found.newest);
    }
    if (found.newest > 0) {
      if (const std::string gap = gap_in_metrics(*run_dir, found.newest, found.branch); !gap.empty()) return gap;
    }
  }
  // A run that died while it was made has nothing to resume; a new one has to be possible beside it.
  const bool restarts = scenario.restorable == 0;
  const bool nothing_there = restarts && find_checkpoints(run_dir.value_or("")).newest < 0;
  const int last = scenario.steps + 10;
  tests::Process next(command(scenario, output_dir, nothing_there ? "new" : "go-on", last));
  if (next.wait() != 0 || next.output() != "done\n") return "the next process: " + next.output();
  if (restarts) return "";
  const Found after = find_checkpoints(*run_dir);
  if (after.newest != last || after.restorable < 2) return "the next process left step " + std::to_string(after.newest);
  for (const auto& entry : fs::directory_iterator(*run_dir + "/checkpoints")) {
    const std::string name = entry.path().filename().string();
    if (name.front() == '.') return name + " is left";
  }
  return gap_in_metrics(*run_dir, last);
}

/// One life of the program in a copy of the prepared folder.
struct Injected {
  std::optional<Traced> traced;
  std::string problem;
};

Injected inject_one(const Scenario& scenario, const std::string& prepared, const Injection& injection) {
  const tests::TempDir dir(tests::TempDir::On::kMemory);
  fs::copy(prepared, dir.path(), fs::copy_options::recursive);
  Injected injected;
  injected.traced = trace(command(scenario, dir.path()), {.injection = injection});
  if (!injected.traced) return injected;
  const Traced& traced = *injected.traced;
  const bool killed = traced.status == 128 + SIGKILL;
  if (traced.status > 127 && !killed) {
    injected.problem = "ended with " + std::to_string(traced.status) + ": " + traced.output;
  } else {
    injected.problem = look_and_go_on(scenario, dir.path(), traced.status == 0);
  }
  if (!injected.problem.empty()) injected.problem = traced.injected_call + ": " + injected.problem;
  return injected;
}

/// A life that nothing disturbs.
Traced undisturbed(const Scenario& scenario, const std::string& prepared, const std::string& record_in) {
  fs::copy(prepared, record_in, fs::copy_options::recursive);
  auto traced = trace(command(scenario, record_in), {.record_below = record_in});
  if (!traced) tests::skip("ptrace is not permitted");
  INFO(traced->output);
  REQUIRE(traced->status == 0);
  REQUIRE(traced->not_understood.empty());
  return *traced;
}

/// The name of each counted call, by which points are drawn.
std::vector<std::string> names_of_calls(const Traced& traced) {
  std::vector<std::string> names;
  for (const std::string& call : traced.counted) names.push_back(call.substr(0, call.find(' ')));
  return names;
}

/// The calls that `strace -f` shows in the same window; -1 where there is no strace.
int calls_by_strace(const Scenario& scenario, const std::string& prepared) {
  const tests::TempDir dir(tests::TempDir::On::kMemory), log;
  fs::copy(prepared, dir.path(), fs::copy_options::recursive);
  std::string without;
  for (const std::string& name : tests::calls_without_files()) without += (without.empty() ? "" : ",") + name;
  std::vector<std::string> words = {"/usr/bin/strace", "-f", "-qq", "-o", log / "calls", "-e", "trace=!" + without};
  if (!fs::exists(words[0])) return -1;
  for (const std::string& word : command(scenario, dir.path())) words.push_back(word);
  tests::Process process(words);
  if (process.wait() != 0) return -1;
  std::ifstream lines(log / "calls");
  int calls = 0;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(tests::kWindowEnd) != std::string::npos) inside = false;
    const bool is_call = line.find("resumed>") == std::string::npos && line.find("---") == std::string::npos &&
                         line.find("+++") == std::string::npos && line.find("MAP_ANONYMOUS") == std::string::npos &&
                         line.find("/roux-window/") == std::string::npos;
    calls += inside && is_call;
    if (line.find(tests::kWindowBegin) != std::string::npos) inside = true;
  }
  return calls;
}

}  // namespace

TEST_CASE("of the points that are drawn some are of each kind, its first and its last, and all come up in time",
          "[ranks][crash]") {
  std::mt19937 random(tests::seed());
  std::vector<std::string> kinds(30, "write");
  kinds[4] = kinds[9] = kinds[17] = "fsync";
  kinds[11] = "rename";
  std::set<int> seen;
  std::size_t drawn = 0, times = 0;
  for (; seen.size() < kinds.size() && times < 1000; ++times) {
    const std::vector<int> points = tests::drawn_points(kinds, random);
    CHECK(std::is_sorted(points.begin(), points.end()));
    for (const int always : {1, 30, 5, 18, 12}) {  // of write, of fsync, the only rename
      CHECK(std::count(points.begin(), points.end(), always) == 1);
    }
    seen.insert(points.begin(), points.end());
    drawn += points.size();
  }
  CHECK(seen.size() == kinds.size());
  CHECK((tests::takes_all() ? times == 1 && drawn == kinds.size() : drawn < times * kinds.size()));
}

TEST_CASE("a save that is killed at any of its calls loses nothing", "[ranks][crash]") {
  bool counted = true;
  std::mt19937 random(tests::seed());
  for (const Scenario& scenario : kScenarios) {
    const tests::TempDir prepared(tests::TempDir::On::kMemory), recorded(tests::TempDir::On::kMemory);
    prepare(scenario, prepared.path());
    const auto calm = undisturbed(scenario, prepared.path(), recorded.path());
    const std::vector<std::string> names = names_of_calls(calm);
    REQUIRE(static_cast<int>(names.size()) == calm.calls);
    std::size_t killed_at = 0;
    for (const auto kind : {Injection::Kind::kKillBefore, Injection::Kind::kKillAfter}) {
      const std::vector<int> points = tests::drawn_points(names, random);
      std::atomic<std::size_t> injected = 0;
      const auto problems = for_each_in_parallel(points, [&](int call) {
        Injected one;
        // Two threads do not always call in the same order, and the last call of one life may be beyond another's.
        for (int life = 0; life < 5 && one.problem.empty() && !(one.traced && one.traced->injected); ++life) {
          one = inject_one(scenario, prepared.path(), {.kind = kind, .at = call});
        }
        injected += one.traced && one.traced->injected;
        return one.problem;
      });
      CAPTURE(scenario.name, joined(problems));
      CHECK(problems.empty());
      CHECK(injected == points.size());
      killed_at += injected;
    }
    const int shown = calls_by_strace(scenario, prepared.path());
    std::printf("%s: killed before and after %d calls, %zu times; strace -f shows %d calls\n", scenario.name,
                calm.calls, killed_at, shown);
    std::fflush(stdout);
    CAPTURE(scenario.name, joined(calm.counted));
    counted = counted && shown >= 0;
    CHECK((shown < 0 || shown == calm.calls));
  }
  if (!counted) tests::skip("strace, which counts the calls once more, is not installed or may not trace (strace)");
}

TEST_CASE("a disk that refuses any call of a save, once, loses nothing and ends nothing badly", "[ranks][crash]") {
  struct Refusal {
    const char* name;
    Injection injection;
  };
  const Refusal refusals[] = {
      {"ENOSPC", {.kind = Injection::Kind::kError, .error = ENOSPC}},
      {"EIO", {.kind = Injection::Kind::kError, .error = EIO}},
      {"EINTR", {.kind = Injection::Kind::kError, .error = EINTR}},
      {"half of the bytes", {.kind = Injection::Kind::kShort}},
  };
  std::mt19937 random(tests::seed());
  for (const Scenario& scenario : kScenarios) {
    const tests::TempDir prepared(tests::TempDir::On::kMemory), recorded(tests::TempDir::On::kMemory);
    prepare(scenario, prepared.path());
    const auto calm = undisturbed(scenario, prepared.path(), recorded.path());
    for (const Refusal& refusal : refusals) {
      // The kinds of refusal differ in what is done about them, not in where they may come: all of them once is enough.
      if (&scenario != kScenarios && refusal.injection.error != EIO) continue;
      std::atomic<int> injected = 0, ended = 0;
      const auto problems = for_each_in_parallel(tests::drawn_points(names_of_calls(calm), random), [&](int call) {
        Injection injection = refusal.injection;
        injection.at = call;
        const Injected one = inject_one(scenario, prepared.path(), injection);
        injected += one.traced && one.traced->injected;
        ended += one.traced && one.traced->status != 0;
        return one.problem;
      });
      std::printf("%s, %s: %d calls refused, %d ended the program\n", scenario.name, refusal.name, injected.load(),
                  ended.load());
      std::fflush(stdout);
      CAPTURE(scenario.name, refusal.name, joined(problems));
      CHECK(problems.empty());
      CHECK(injected > 0);
    }
  }
}

TEST_CASE("a machine that loses power at any moment of a save loses nothing", "[ranks][crash]") {
  std::mt19937 draws(tests::seed());
  for (const Scenario& scenario : kScenarios) {
    const unsigned kinds = scenario.restorable > 0 ? 6 : 3;  // of states: nothing, all, and random ones
    const tests::TempDir prepared(tests::TempDir::On::kMemory), recorded(tests::TempDir::On::kMemory);
    prepare(scenario, prepared.path());
    const auto calm = undisturbed(scenario, prepared.path(), recorded.path());
    CrashDisk disk(prepared.path());
    std::vector<CrashDisk> moments;
    std::vector<bool> committed;
    std::vector<std::string> kinds_of_moments;
    // Paths were recorded below another folder than the one that was read.
    const auto moved = [&](const std::string& path) {
      return path.empty() ? path : prepared.path() + path.substr(recorded.path().size());
    };
    bool is_committed = false;
    for (DiskEvent event : calm.events) {
      event.path = moved(event.path);
      event.other = moved(event.other);
      if (event.kind == DiskEvent::Kind::kMark && event.calls_before > 0) is_committed = true;
      disk.apply(event);
      if (event.calls_before == 0) continue;
      moments.push_back(disk);
      committed.push_back(is_committed);
      kinds_of_moments.push_back(std::to_string(static_cast<int>(event.kind)));
    }
    std::vector<int> states;  // from 1 on, `kinds` of them for each moment
    for (const int moment : tests::drawn_points(kinds_of_moments, draws)) {
      for (unsigned kind = 1; kind <= kinds; ++kind) {
        states.push_back((moment - 1) * static_cast<int>(kinds) + static_cast<int>(kind));
      }
    }
    const auto problems = for_each_in_parallel(states, [&](int state) {
      const auto moment = static_cast<std::size_t>((state - 1) / static_cast<int>(kinds));
      const unsigned variant = static_cast<unsigned>(state - 1) % kinds;
      const auto unsynced = variant == 0   ? CrashDisk::Unsynced::kNone
                            : variant == 1 ? CrashDisk::Unsynced::kAll
                                           : CrashDisk::Unsynced::kRandom;
      std::mt19937 random(static_cast<unsigned>(state));
      const tests::TempDir dir(tests::TempDir::On::kMemory);
      moments[moment].after_power_loss(unsynced, random, dir.path());
      const std::string problem = look_and_go_on(scenario, dir.path(), committed[moment]);
      return problem.empty()
                 ? ""
                 : "moment " + std::to_string(moment) + ", state " + std::to_string(variant) + ": " + problem;
    });
    std::printf("%s: %zu states of the disk, for %zu changes\n", scenario.name, states.size(), moments.size());
    std::fflush(stdout);
    CAPTURE(scenario.name, joined(problems));
    CHECK(problems.empty());
  }
}
