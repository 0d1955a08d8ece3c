#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/sweep/studies.h"
#include "tests/support/sweeps.h"
#include "tests/support/temp_dir.h"

namespace cli_test {

/// A sweep of a small recipe without trials; `section` is its `sweep` but for n_trials.
inline runner::sweep::OpenSweep open_sweep(const std::string& folder, const std::string& section) {
  runner::core::Diagnostics diagnostics;
  auto sweep = tests::read_sweep("  n_trials: 9\n" + section, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(sweep);
  runner::sweep::StudyInfo info;
  info.name = "tiny-1";
  info.recipe_json = sweep->identity();
  info.created_ms = 1000;
  runner::sweep::OpenSweep open{runner::sweep::Study::create(folder, info).value(), *std::move(sweep)};
  open.study->add_worker(info.created_ms);
  return open;
}

struct MadeTrial {
  runner::sweep::TrialState state = runner::sweep::TrialState::kComplete;
  double value = 0;
  std::vector<double> others = {};
  std::int64_t step = 2;
  std::string reason = "";
  std::vector<runner::store::SeriesPoint> curve = {};
};

/// Trains nothing: the next variant comes out as `made` says. Each takes one second, and begins when the one before
/// it ends.
inline void add_trial(const runner::sweep::OpenSweep& open, const runner::sweep::Point& point, const MadeTrial& made) {
  using namespace runner::sweep;
  Study& study = *open.study;
  Study::Demand demand;
  demand.variants_max = 1000;
  demand.propose = [&](const std::vector<Variant>& before, const std::vector<Trial>&) -> std::optional<Variant> {
    return Variant{static_cast<std::int64_t>(before.size()), point, open.sweep.space().text(point)};
  };
  demand.now_ms = 1000 * (static_cast<std::int64_t>(study.trials().size()) + 1);
  const auto trial = study.claim(demand);
  REQUIRE(trial);
  TrialEnd end;
  end.state = made.state;
  if (made.state != TrialState::kFailed) end.value = made.value;
  end.others = made.others;
  end.step = made.step;
  end.run = "run" + std::to_string(trial->number);
  end.reason = made.reason;
  end.curve = made.curve;
  study.end(trial->number, end, demand.now_ms + 1000);
}

}  // namespace cli_test
