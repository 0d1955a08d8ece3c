// The real program is killed at random calls of its saves, again and again, and resumed after each: nothing that could
// be restored before is lost, and the end has the bits of a run that nothing disturbed. The tracer kills: which call it
// is depends on the seed and on how the threads meet, never on how fast they are.

#include <signal.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/store/run_reader.h"
#include "tests/support/disk/tracer.h"
#include "tests/support/process/equal_checkpoints.h"
#include "tests/support/process/test_run.h"
#include "tests/support/sampling.h"
#include "tests/support/skip.h"

namespace {

namespace artifact = runner::artifact;
namespace store = runner::store;

using tests::Injection;
using tests::TestRun;

constexpr int kKept = 2;           // save_total_limit
constexpr unsigned kSavesMax = 2;  // of one life: the run is long enough for that many in each
constexpr std::int64_t kSteps = 250;
constexpr const char* kLast = "step-000250";

constexpr const char* kRecipe = R"(
run_name: killed
seed: 5
model: {type: gpt, n_layer: 1, n_head: 2, n_embd: 64, dropout: 0.1}
data:
  train: {type: text, path: corpus.txt, max_seq_len: 16}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-3}
training: {max_steps: 250, micro_batch_size: 2}
checkpoint: {save_steps: 2, save_total_limit: 2}
logging_steps: 1
launch: {num_cpu_threads_per_process: 1}
)";

struct Fixture : TestRun {
  Fixture() : TestRun(kRecipe) { write_corpus(3'000); }
  std::vector<std::string> traced_command() const {
    return {"/usr/bin/env", "--chdir=" + path().string(), tests::roux_program(), "run", "recipe.yaml", "--verbose"};
  }
  bool has_run() const { return std::filesystem::exists(path() / "runs") && !run_dir().empty(); }
};

struct Restorable {
  int count = 0;
  std::int64_t newest = 0, branch = 0;
};

Restorable restorable(const Fixture& test) {
  Restorable found;
  if (!test.has_run()) return found;
  const std::string folder = (test.run_dir() / "checkpoints").string();
  if (!std::filesystem::exists(folder)) return found;
  for (const artifact::CheckpointInfo& info : artifact::list_checkpoints(folder)) {
    found.count += artifact::verify_checkpoint(info.path).ok();
  }
  std::vector<std::string> skipped;
  if (const auto newest = artifact::newest_verified(folder, skipped)) {
    found.newest = newest->step;
    found.branch = newest->manifest.fields.branch;
  }
  return found;
}

/// Points of the loss along a branch (-1: the newest), up to a step; none where a death came before the first of them.
std::vector<store::SeriesPoint> losses(const Fixture& test, std::int64_t branch, std::int64_t until) {
  auto points = store::read_series(test.run_dir().string(), "loss", "train", branch).value_or({});
  std::erase_if(points, [until](const store::SeriesPoint& point) { return point.step > until; });
  return points;
}

struct Lost {
  std::size_t steps = 0;
  double seconds = 0;  ///< from the end of the first of those steps to the last that the program said
};

/// What was trained and is not in run.db, by the run's log.
Lost lost_metrics(const Fixture& test) {
  const std::vector<store::SeriesPoint> points = losses(test, -1, kSteps);
  const std::int64_t last = points.empty() ? 0 : points.back().step;
  std::ifstream log(test.run_dir() / "logs/rank-0.log");
  Lost lost;
  double first_s = 0, now_s = 0;
  for (std::string line; std::getline(log, line);) {
    if (line.find(" resuming ") != std::string::npos) lost = {};  // before that: another life
    const std::size_t word = line.find("trained step ");
    int hours = 0, minutes = 0;
    double seconds = 0;
    if (std::sscanf(line.c_str(), "%*10sT%d:%d:%lf", &hours, &minutes, &seconds) != 3) continue;
    now_s = 3600.0 * hours + 60.0 * minutes + seconds;
    if (word == std::string::npos || std::atoll(line.c_str() + word + 13) <= last) {
      lost = {};
    } else if (lost.steps++ == 0) {
      first_s = now_s;
    }
    if (lost.steps > 0) lost.seconds = now_s - first_s;
  }
  return lost;
}

/// From the making of the folder that the draft of a save is written into; 1: of the first one.
tests::WindowBegin from_draft(int save) { return {"mkdir", "/.step-", save}; }

/// Calls from the making of one draft's folder to the making of the next one's.
int calls_of_a_save() {
  const Fixture one, other;
  const auto first = tests::trace(one.traced_command(), {.begin = from_draft(1)});
  const auto second = tests::trace(other.traced_command(), {.begin = from_draft(2)});
  INFO(first->output.substr(0, 3000));
  REQUIRE(first->status == 0);
  REQUIRE(second->status == 0);
  return first->calls - second->calls;
}

}  // namespace

TEST_CASE("a program that is killed again and again in its saves ends where an undisturbed one does",
          "[ranks][killed][ptrace]") {
  if (!tests::trace({"/bin/true"}, {})) tests::skip("ptrace is not permitted");
  const Fixture straight, killed;
  REQUIRE(straight.run().status == 0);
  const std::vector<store::SeriesPoint> expected = losses(straight, -1, kSteps);
  REQUIRE(expected.size() == kSteps);
  const int calls = calls_of_a_save();
  REQUIRE(calls > 20);
  const int kills = tests::share_of(40);
  std::mt19937 random(tests::seed());
  int saved_in = 0;
  Lost most;
  Restorable before;
  for (int life = 0; life < kills; ++life) {
    const Injection injection{.kind = random() % 2 == 0 ? Injection::Kind::kKillBefore : Injection::Kind::kKillAfter,
                              .at = 1 + static_cast<int>(random() % static_cast<unsigned>(calls))};
    const tests::WindowBegin begin = from_draft(1 + static_cast<int>(random() % kSavesMax));
    const auto traced = tests::trace(killed.traced_command(), {.injection = injection, .begin = begin});
    CAPTURE(life, begin.time, injection.at, traced->injected_call, traced->output);
    REQUIRE(traced->status == 128 + SIGKILL);
    const Restorable after = restorable(killed);
    // What a death left over for the rotation goes with the next save.
    CHECK(after.count >= std::min(before.count, kKept));
    CHECK(after.newest >= before.newest);
    saved_in += after.newest > before.newest;
    before = after;
    const Lost lost = lost_metrics(killed);
    most = {std::max(most.steps, lost.steps), std::max(most.seconds, lost.seconds)};
    if (after.newest == 0) continue;
    // Whatever was committed has its metrics.
    const auto points = losses(killed, after.branch, after.newest);
    REQUIRE(points.size() == static_cast<std::size_t>(after.newest));
    for (std::size_t i = 0; i < points.size(); ++i) REQUIRE(points[i].value == expected[i].value);
  }
  std::printf("killed %d times in saves of about %d calls, %d times with a new checkpoint, the last of step %lld\n",
              kills, calls, saved_in, static_cast<long long>(before.newest));
  std::printf("  at most %zu steps, %.3f s, of metrics were lost\n", most.steps, most.seconds);
  std::fflush(stdout);
  const auto ended = killed.run();
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  tests::check_equal_checkpoints(straight, killed, kLast);
  const auto points = losses(killed, -1, kSteps);
  REQUIRE(points.size() == expected.size());
  for (std::size_t i = 0; i < points.size(); ++i) CHECK(points[i].value == expected[i].value);
}
