// How fast a sweep is without what it trains: proposes, claims and ends trials in a study on disk, for tests/bench.
//   bench_sweep_engine DIR N SAMPLER [PRUNER]    N trials, one JSON line

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/recipe/read.h"
#include "runner/sweep/pruning.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/studies.h"
#include "runner/sweep/study/observation_list.h"
#include "runner/sweep/study/study_counters.h"

// The allocator of the program, as runner/cli/main.cpp sets it.
extern "C" {
__attribute__((visibility("default"))) const char* malloc_conf =
    "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,lg_extent_max_active_fit:40";
}

namespace {

namespace sweep = runner::sweep;
using runner::core::Diagnostics;
using runner::core::RunError;
using runner::core::system_clock;
using runner::store::SeriesPoint;

/// What peers/sweep.py varies, and one choice more.
std::string recipe(const std::string& folder, const std::string& trials, const std::string& sampler,
                   const std::string& pruner) {
  return "run_name: bench\noutput_dir: " + folder + R"(
vars: {width: 64}
model: {type: mlp, hidden: ["${vars.width}"]}
data: {train: {type: synthetic, task: regression, num_samples: 64}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adamw, lr: 0.01}
training: {max_steps: 81, micro_batch_size: 32}
eval: {eval_steps: 3}
sweep:
  n_trials: )" +
         trials + (pruner.empty() ? "" : "\n  pruner: {type: " + pruner + "}") + "\n  sampler: {type: " + sampler +
         R"(, seed: 0}
  parameters:
    optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}
    vars.width: {distribution: int, min: 8, max: 128}
    optimizer.type: {values: [adamw, sgd]}
)";
}

sweep::Sweep read_sweep(const std::string& text) {
  Diagnostics diagnostics;
  const auto source = std::make_shared<const runner::core::Source>(
      runner::core::Source{"recipe.yaml", text, runner::core::Source::Kind::kFile});
  auto tree = runner::recipe::read_yaml(source, {}, diagnostics);
  std::optional<sweep::Sweep> read;
  if (tree) read = sweep::Sweep::read("recipe.yaml", {*std::move(tree), {source}, "."}, diagnostics);
  if (!read) throw RunError(diagnostics.all().front().message);
  return *std::move(read);
}

constexpr std::int64_t kSteps = 81, kEvery = 3;

/// Where a smooth valley has its floor matters little; samplers are to have something to learn.
double value_of(const sweep::Point& point) {
  return std::pow(std::log10(point[0]) + 2.5, 2) + std::pow(point[1] / 64 - 1, 2) + 0.1 * point[2];
}

/// What a trial reports: it comes down to its value, each at a pace of its own.
std::vector<SeriesPoint> curve_of(const sweep::Trial& trial, double value, bool whole) {
  if (!whole) return {{kSteps / 2, 2 * value}, {kSteps, value}};
  const double pace = 1 + static_cast<double>(trial.number * 11 % 7);
  std::vector<SeriesPoint> curve;
  for (std::int64_t step = kEvery; step <= kSteps; step += kEvery) {
    curve.push_back({step, value + std::exp(-static_cast<double>(step) * pace / 20)});
  }
  return curve;
}

sweep::TrialEnd end_of(const sweep::Sweep& sweep, sweep::Study& study, sweep::Pruning& pruning,
                       const sweep::Trial& trial) {
  const double value = value_of(study.variants()[static_cast<std::size_t>(trial.variant)].point);
  sweep::TrialEnd end;
  end.run = "bench-run";
  end.curve = curve_of(trial, value, sweep.pruner() != nullptr);
  if (const auto at = pruning.pruned_at(trial.number, end.curve)) {
    end.state = sweep::TrialState::kPruned;
    std::erase_if(end.curve, [&at](const SeriesPoint& point) { return point.step > at->step; });
  }
  end.step = end.curve.back().step;
  end.value = end.curve.back().value;
  return end;
}

double cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void drive(const sweep::Sweep& sweep, sweep::Study& study) {
  const runner::core::Clock& clock = system_clock();
  sweep::ObservationList observations(sweep);
  sweep::StudyCounters tally(sweep);
  std::int64_t sampler_ns = 0;
  sweep::Study::Demand demand;
  study.add_worker(clock.wall_ms());
  demand.variants_max = *sweep.config().n_trials;
  demand.propose = [&](const std::vector<sweep::Variant>& variants,
                       const std::vector<sweep::Trial>& trials) -> std::optional<sweep::Variant> {
    const auto& known = observations.update(study.changes(), variants, trials);
    const std::int64_t begin_ns = clock.monotonic_ns();
    const auto point = sweep.sampler().propose(known);
    sampler_ns += clock.monotonic_ns() - begin_ns;
    if (!point) return std::nullopt;
    return sweep::Variant{static_cast<std::int64_t>(variants.size()), *point, sweep.space().text(*point)};
  };
  sweep::Pruning pruning(sweep, study);
  demand.promote = [&] { return pruning.promoted(); };
  const std::int64_t begin_ns = clock.monotonic_ns();
  const double begin_cpu_s = cpu_s();
  std::int64_t trials = 0;
  for (;; ++trials) {
    study.requeue_trials();
    demand.now_ms = clock.wall_ms();
    const auto trial = study.claim(demand);
    if (!trial) break;
    study.end(trial->number, end_of(sweep, study, pruning, *trial), clock.wall_ms());
    study.sync();  // a worker does twice a second
    trial_line(sweep, study, tally.update(study), trial->number);
  }
  const double seconds = static_cast<double>(clock.monotonic_ns() - begin_ns) * 1e-9;
  std::printf("{\"trials\": %lld, \"trials_per_s\": %.0f, \"sampler_share\": %.3f, \"cpu_ms\": %.3f}\n",
              static_cast<long long>(trials), static_cast<double>(trials) / seconds,
              static_cast<double>(sampler_ns) * 1e-9 / seconds,
              1000 * (cpu_s() - begin_cpu_s) / static_cast<double>(trials));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) return std::fprintf(stderr, "usage: bench_sweep_engine DIR N SAMPLER [PRUNER]\n"), 2;
  try {
    const sweep::Sweep sweep = read_sweep(recipe(argv[1], argv[2], argv[3], argc == 5 ? argv[4] : ""));
    drive(sweep, *sweep::begin_study(sweep, system_clock()).value());
    return 0;
  } catch (const RunError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
