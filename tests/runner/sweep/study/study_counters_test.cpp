#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "components/sampler/math/ranking.h"
#include "runner/sweep/study/pareto_front.h"
#include "runner/sweep/study/study_counters.h"
#include "tests/support/sweeps.h"
#include "tests/support/temp_dir.h"

using runner::sweep::ParetoFront;
using runner::sweep::Study;
using runner::sweep::StudyCounters;
using runner::sweep::Trial;
using runner::sweep::TrialEnd;
using runner::sweep::TrialState;
using runner::sweep::Variant;

namespace {

using Numbers = std::vector<std::int64_t>;

/// Those that no other one dominates, each compared with each.
Numbers front_by_hand(const std::vector<std::vector<double>>& values) {
  Numbers list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool beaten = std::any_of(values.begin(), values.end(), [&](const std::vector<double>& other) {
      return !values[i].empty() && !other.empty() && components::sampler::dominates(other, values[i]);
    });
    if (!beaten && !values[i].empty()) list.push_back(static_cast<std::int64_t>(i));
  }
  return list;
}

}  // namespace

TEST_CASE("an updated front equals the one computed from all variants", "[sweep][counters]") {
  std::mt19937 random(7);
  const auto below = [&random](std::uint32_t count) { return static_cast<double>(random() % count); };
  ParetoFront front;
  std::vector<std::vector<double>> values(40);
  for (int change = 0; change < 600; ++change) {
    const std::size_t variant = random() % values.size();
    values[variant].clear();
    if (random() % 4 != 0) values[variant] = {below(12), below(12), below(12)};  // few values, so that many are alike
    front.put(static_cast<std::int64_t>(variant), values[variant]);
    REQUIRE(front.variants() == front_by_hand(values));
  }
}

TEST_CASE("of one objective the front is the first of the best", "[sweep][counters]") {
  ParetoFront front;
  CHECK(front.variants().empty());
  front.put(0, {2});
  front.put(1, {1});
  front.put(2, {1});
  front.put(3, {NAN});
  CHECK(front.variants() == Numbers{1});
  CHECK(front.best(3) == Numbers{1, 2, 0});
  front.put(1, {});
  CHECK(front.variants() == Numbers{2});
  CHECK(front.best(9) == Numbers{2, 0, 3});
}

TEST_CASE("counters that were updated on the way equal new ones", "[sweep][counters]") {
  runner::core::Diagnostics diagnostics;
  const auto sweep = tests::read_sweep(
      "  parameters: {vars.width: {min: 8, max: 99}}\n  n_trials: 9\n  replicates: 2\n  stop: {patience: 3}\n",
      diagnostics);
  INFO(render(diagnostics));
  REQUIRE(sweep.has_value());
  const tests::TempDir dir;
  runner::sweep::StudyInfo info;
  info.name = "tiny-1";
  const auto study = Study::create(dir.path(), info).value();
  study->add_worker(1);
  Study::Demand demand;
  demand.variants_max = 9;
  demand.replicates = 2;
  demand.propose = [](const std::vector<Variant>& variants, const std::vector<Trial>&) {
    return Variant{static_cast<std::int64_t>(variants.size()), {0}, ""};
  };
  demand.promote = [&]() -> std::optional<std::int64_t> {
    if (study->trials().size() == 10 && study->trials()[4].state == TrialState::kPruned) return 4;
    return std::nullopt;
  };
  std::mt19937 random(7);
  StudyCounters kept(*sweep);
  while (const auto trial = study->claim(demand)) {
    kept.update(*study);
    TrialEnd end;
    end.state = trial->number == 4 && trial->promoted == 0 ? TrialState::kPruned
                : random() % 5 == 0                        ? TrialState::kFailed
                                                           : TrialState::kComplete;
    if (end.state != TrialState::kFailed) end.value = static_cast<double>(random() % 100);
    end.step = 1;
    end.spent = {10, 20, 30};
    study->end(trial->number, end, 1000 + trial->number);
    kept.update(*study);
    StudyCounters rebuilt(*sweep);
    rebuilt.update(*study);
    for (const TrialState state : {TrialState::kWaiting, TrialState::kRunning, TrialState::kComplete,
                                   TrialState::kPruned, TrialState::kFailed}) {
      CHECK(kept.count(state) == rebuilt.count(state));
    }
    CHECK(kept.took_ms() == rebuilt.took_ms());
    CHECK(kept.spent().tokens == rebuilt.spent().tokens);
    CHECK(kept.best(3) == rebuilt.best(3));
    CHECK(kept.without_improvement() == rebuilt.without_improvement());
  }
  CHECK(kept.ended() == 18);
  CHECK(kept.to_come() == 18);
  CHECK(study->trials()[4].promoted == 1);
}
