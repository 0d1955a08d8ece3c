#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/sweep/next_variant.h"
#include "runner/sweep/pruning.h"
#include "runner/sweep/study/observation_list.h"
#include "runner/sweep/trial/lineage.h"
#include "runner/sweep/trial/spare_checkpoints.h"
#include "tests/support/sweeps.h"
#include "tests/support/temp_dir.h"

using runner::store::SeriesPoint;
using runner::sweep::Study;
using runner::sweep::Sweep;
using runner::sweep::Trial;
using runner::sweep::TrialEnd;
using runner::sweep::TrialState;
using runner::sweep::Variant;

namespace {

/// Learning curves that cross: the value of trial `i` at step `s`.
double table(std::int64_t i, std::int64_t s) {
  const double level = static_cast<double>((i * 37) % 64) / 64, pace = 1 + static_cast<double>((i * 11) % 7);
  return level + std::exp(-static_cast<double>(s) * pace / 20);
}

using Arrival = std::pair<std::int64_t, std::int64_t>;  // of a trial at a rung

Sweep sweep_of(const std::string& pruner, std::int64_t trials, int steps) {
  runner::core::Diagnostics diagnostics;
  auto sweep = tests::read_sweep(
      "  parameters: {optimizer.lr: {min: 0.001, max: 0.1}}\n  sampler: random\n  n_trials: " + std::to_string(trials) +
          "\n  pruner: " + pruner + "\neval: {eval_steps: 1}\n",
      diagnostics, steps);
  INFO(runner::core::render(diagnostics));
  REQUIRE(sweep.has_value());
  return *std::move(sweep);
}

std::unique_ptr<Study> new_study(const std::string& folder) {
  runner::sweep::StudyInfo info;
  info.name = "tiny-1";
  info.recipe_json = "{}";
  return Study::create(folder, info).value();
}

/// A sweep over the table by one worker; when which trial came to which rung.
std::vector<Arrival> arrivals(const Sweep& sweep, std::int64_t steps, const std::set<std::int64_t>& rungs) {
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  runner::sweep::ObservationList observations(sweep);
  Study::Demand demand;
  study->add_worker(1);
  demand.now_ms = 1;
  demand.variants_max = *sweep.config().n_trials;
  demand.propose = [&](const std::vector<Variant>& variants, const std::vector<Trial>& trials) {
    return next_variant(sweep, observations.update(study->changes(), variants, trials));
  };
  runner::sweep::Pruning pruning(sweep, *study);
  demand.promote = [&] { return pruning.promoted(); };
  std::vector<Arrival> list;
  while (const auto trial = study->claim(demand)) {
    std::vector<SeriesPoint> curve;
    for (std::int64_t s = 1; s <= steps; ++s) curve.push_back({s, table(trial->number, s)});
    const auto at = pruning.pruned_at(trial->number, curve);
    TrialEnd end;
    end.state = at ? TrialState::kPruned : TrialState::kComplete;
    end.step = at ? at->step : steps;
    end.value = curve[static_cast<std::size_t>(end.step - 1)].value;
    end.curve.assign(curve.begin(), curve.begin() + end.step);
    for (std::int64_t s = trial->promoted + 1; s <= end.step; ++s) {
      if (rungs.contains(s)) list.emplace_back(trial->number, s);
    }
    study->end(trial->number, end, 2);
  }
  return list;
}

/// Asynchronous successive halving as the paper's algorithm 2 writes it down, but that the best one at a rung always
/// goes on: the next job is a promotion from the highest rung that has one, else a new trial. `bracket_of` deals trials
/// out; each bracket has its rungs.
class ByHand {
 public:
  ByHand(std::vector<std::vector<std::int64_t>> rungs, std::int64_t factor)
      : rungs_(std::move(rungs)), factor_(factor), at_(rungs_.size()), promoted_(rungs_.size()) {
    for (std::size_t b = 0; b < rungs_.size(); ++b) {
      at_[b].resize(rungs_[b].size());
      promoted_[b].resize(rungs_[b].size());
    }
  }

  template <typename BracketOf>
  std::vector<Arrival> run(std::int64_t trials, const BracketOf& bracket_of) {
    std::vector<Arrival> list;
    for (std::int64_t next = 0;;) {
      if (const auto job = promotion()) {
        arrive(job->bracket, job->rung, job->trial, list);
      } else if (next < trials) {
        arrive(bracket_of(next), 0, next, list);
        ++next;
      } else {
        return list;
      }
    }
  }

 private:
  struct Job {
    std::size_t bracket, rung;
    std::int64_t trial;
  };

  std::optional<Job> promotion() {
    for (std::size_t b = 0; b < rungs_.size(); ++b) {
      for (std::size_t k = rungs_[b].size() - 1; k-- > 0;) {
        auto& here = at_[b][k];
        std::sort(here.begin(), here.end());
        const std::size_t kept = std::max<std::size_t>(1, here.size() / static_cast<std::size_t>(factor_));
        for (std::size_t i = 0; i < std::min(kept, here.size()); ++i) {
          if (promoted_[b][k].insert(here[i].second).second) return Job{b, k + 1, here[i].second};
        }
      }
    }
    return std::nullopt;
  }

  void arrive(std::size_t bracket, std::size_t rung, std::int64_t trial, std::vector<Arrival>& list) {
    const std::int64_t step = rungs_[bracket][rung];
    at_[bracket][rung].emplace_back(table(trial, step), trial);
    list.emplace_back(trial, step);
  }

  std::vector<std::vector<std::int64_t>> rungs_;
  std::int64_t factor_;
  std::vector<std::vector<std::vector<std::pair<double, std::int64_t>>>> at_;
  std::vector<std::vector<std::set<std::int64_t>>> promoted_;
};

}  // namespace

TEST_CASE("ASHA promotes whom halving by hand promotes, and when", "[sweep][promotion]") {
  const auto found =
      arrivals(sweep_of("{type: asha, min_steps: 3, reduction_factor: 3}", 60, 100), 100, {3, 9, 27, 81, 100});
  CHECK(found == ByHand({{3, 9, 27, 81, 100}}, 3).run(60, [](std::int64_t) { return 0; }));
  // One in three of 60; without promotion fewer, who came when there were few others.
  CHECK(std::count_if(found.begin(), found.end(), [](const Arrival& one) { return one.second == 9; }) == 20);
}

TEST_CASE("Hyperband promotes within each bracket", "[sweep][promotion]") {
  // From 3 to 81 steps by 3: four brackets of 27, 12, 6 and 4 trials, of which the last one stops none.
  const auto found = arrivals(sweep_of("{type: hyperband, min_steps: 3, max_steps: 81}", 98, 81), 81, {3, 9, 27, 81});
  const auto bracket_of = [](std::int64_t trial) -> std::size_t {
    const std::int64_t sizes[] = {27, 12, 6, 4};
    std::size_t bracket = 0;
    for (std::int64_t left = trial % 49; left >= sizes[bracket]; ++bracket) left -= sizes[bracket];
    return bracket;
  };
  const auto by_hand = ByHand({{3, 9, 27, 81}, {9, 27, 81}, {27, 81}, {81}}, 3).run(98, bracket_of);
  const auto at_rungs_of_its_bracket = [&](const Arrival& one) {
    const std::int64_t firsts[] = {3, 9, 27, 81};
    return one.second >= firsts[bracket_of(one.first)];
  };
  std::vector<Arrival> counted;
  std::copy_if(found.begin(), found.end(), std::back_inserter(counted), at_rungs_of_its_bracket);
  CHECK(counted == by_hand);
}

TEST_CASE("without promotion a pruned trial stays pruned", "[sweep][promotion]") {
  const auto found =
      arrivals(sweep_of("{type: asha, min_steps: 3, reduction_factor: 3, promote: false}", 60, 100), 100, {3, 9});
  CHECK(std::count_if(found.begin(), found.end(), [](const Arrival& one) { return one.second == 9; }) < 20);
}

TEST_CASE("halving sees what others that run have reported", "[sweep][pruning]") {
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  const Sweep sweep = sweep_of("{type: asha, min_steps: 3, reduction_factor: 2}", 4, 10);
  runner::sweep::ObservationList observations(sweep);
  Study::Demand demand;
  study->add_worker(1);
  demand.variants_max = 4;
  demand.propose = [&](const std::vector<Variant>& variants, const std::vector<Trial>& trials) {
    return next_variant(sweep, observations.update(study->changes(), variants, trials));
  };
  study->claim(demand);
  study->claim(demand);
  const std::vector<SeriesPoint> worse = {{3, 0.9}}, better = {{3, 0.5}};
  runner::sweep::Pruning pruning(sweep, *study);
  CHECK_FALSE(pruning.pruned_at(0, worse).has_value());
  pruning.see({{0, worse}, {1, better}});
  CHECK(pruning.pruned_at(0, worse).has_value());
  CHECK_FALSE(pruning.pruned_at(1, better).has_value());
  pruning.see({});
  CHECK_FALSE(pruning.pruned_at(0, worse).has_value());
}

TEST_CASE("checkpoints that no trial resumes from are deleted, except the best", "[sweep][checkpoints]") {
  const auto spare = [](const std::string& more, bool over) {
    runner::core::Diagnostics diagnostics;
    const auto sweep = tests::read_sweep(
        "  parameters: {optimizer.lr: {min: 0.001, max: 0.1}}\n  sampler: random\n  checkpoints: {keep_best: 1}\n" +
            more + "eval: {eval_steps: 1}\n",
        diagnostics, 20);
    INFO(runner::core::render(diagnostics));
    REQUIRE(sweep.has_value());
    const tests::TempDir dir;
    const auto study = new_study(dir.path());
    runner::sweep::ObservationList observations(*sweep);
    Study::Demand demand;
    study->add_worker(1);
    demand.variants_max = 6;
    demand.propose = [&](const std::vector<Variant>& variants, const std::vector<Trial>& trials) {
      return next_variant(*sweep, observations.update(study->changes(), variants, trials));
    };
    const TrialState states[] = {TrialState::kComplete, TrialState::kComplete, TrialState::kPruned, TrialState::kFailed,
                                 TrialState::kComplete};
    const double values[] = {0.5, 0.3, 0.9, 0.9, 0.4};
    for (std::size_t i = 0; i < 5; ++i) {
      const auto trial = study->claim(demand);
      REQUIRE(trial.has_value());
      TrialEnd end;
      end.state = sweep->population() != nullptr ? TrialState::kComplete : states[i];
      if (end.state != TrialState::kFailed) end.value = values[i];
      study->end(trial->number, end, 2);
    }
    runner::sweep::StudyCounters counters(*sweep);
    return spare_trials(*sweep, counters.update(*study), study->trials(), over);
  };
  using List = std::vector<std::int64_t>;
  CHECK(spare("  n_trials: 6\n", false) == List{0, 2, 4});
  CHECK(spare("  n_trials: 6\n  pruner: {type: asha, min_steps: 5}\n", false) == List{0, 4});  // 2 may be promoted
  CHECK(spare("  n_trials: 6\n  pruner: {type: asha, min_steps: 5}\n", true) == List{0, 2, 4});
  // Of a population of two the third generation runs, from checkpoints of the second: trials 2 and 3.
  CHECK(spare("  population: {size: 2, interval: 5}\n", false) == List{0});
}

TEST_CASE("a trial is complete at its own last step, wherever that is", "[sweep][pruning]") {
  for (const char* parameters : {"{training.max_steps: {values: [6, 12]}}", "{vars.steps: {values: [6, 12]}}"}) {
    DYNAMIC_SECTION(parameters) {
      runner::core::Diagnostics diagnostics;
      const std::string steps = std::string(parameters).find("vars") != std::string::npos ? "\"${vars.steps}\"" : "24";
      const auto sweep = tests::read_sweep("  parameters: " + std::string(parameters) +
                                               "\n  pruner: {type: asha, min_steps: 3, reduction_factor: 2}\n"
                                               "eval: {eval_steps: 1}\n",
                                           diagnostics, steps);
      INFO(runner::core::render(diagnostics));
      REQUIRE(sweep.has_value());
      const tests::TempDir dir;
      const auto study = new_study(dir.path());
      study->add_worker(1);
      Study::Demand demand;
      demand.variants_max = 3;
      demand.propose = [](const std::vector<Variant>& before, const std::vector<Trial>&) -> std::optional<Variant> {
        const auto number = static_cast<std::int64_t>(before.size());
        return Variant{number, {number == 0 ? 1.0 : 0.0}, ""};  // of 12 steps, and of 6
      };
      study->claim(demand);
      TrialEnd good;
      good.value = 0.1;
      good.step = 12;
      good.curve = {{3, 0.5}, {6, 0.1}, {12, 0.1}};
      study->end(0, good, 9);
      study->claim(demand);
      const std::vector<SeriesPoint> worse_at_the_end = {{3, 0.4}, {6, 0.9}};
      CHECK(sweep->total_steps({0.0}) == 6);
      CHECK(sweep->total_steps({1.0}) == 12);
      runner::sweep::Pruning pruning(*sweep, *study);
      CHECK_FALSE(pruning.pruned_at(1, worse_at_the_end).has_value());
    }
  }
}

TEST_CASE("checkpoints that cannot go stay for the next worker, and what the last one left goes",
          "[sweep][checkpoints]") {
  namespace fs = std::filesystem;
  runner::core::Diagnostics diagnostics;
  const auto sweep = tests::read_sweep(
      "  parameters: {optimizer.lr: {min: 0.001, max: 0.1}}\n  sampler: random\n  n_trials: 2\n"
      "  checkpoints: {keep_best: 1}\n",
      diagnostics, 20);
  REQUIRE(sweep.has_value());
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  runner::sweep::ObservationList observations(*sweep);
  Study::Demand demand;
  study->add_worker(1);
  demand.variants_max = 2;
  demand.propose = [&](const std::vector<Variant>& variants, const std::vector<Trial>& trials) {
    return next_variant(*sweep, observations.update(study->changes(), variants, trials));
  };
  for (const double value : {0.5, 0.3}) {
    const auto trial = study->claim(demand);
    REQUIRE(trial.has_value());
    TrialEnd end;
    end.value = value;
    end.run = "run";
    study->end(trial->number, end, 2);
  }
  const std::string folder = runner::sweep::trial_run_dir(*study, dir.path(), study->trials().front()) + "/checkpoints";
  fs::create_directories(folder);
  const auto draft = runner::artifact::CheckpointWriter::begin(folder, 10, 0).value();
  draft->add_text("trainer.json", "{}").value();
  draft->commit({}, nullptr, 10).value();
  const std::string taken = folder + "/.step-000010.deleted-" + std::to_string(getpid());  // its name on its way out
  fs::create_directories(taken + "/not_empty");
  fs::create_directory(folder + "/.step-000020.deleted-99999999");  // process ids end at 2^22
  std::set<std::int64_t> removed;
  runner::sweep::StudyCounters counters(*sweep);
  remove_spare_checkpoints(*sweep, *study, counters.update(*study), dir.path(), true, removed);
  CHECK(fs::exists(folder + "/step-000010"));
  CHECK_FALSE(fs::exists(folder + "/.step-000020.deleted-99999999"));
  removed.clear();
  remove_spare_checkpoints(*sweep, *study, counters.update(*study), dir.path(), true, removed);
  CHECK(fs::is_empty(folder));
}
