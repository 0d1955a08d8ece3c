#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/sweep/limits.h"
#include "tests/support/sweeps.h"
#include "tests/support/temp_dir.h"

using runner::sweep::Study;
using runner::sweep::Trial;
using runner::sweep::TrialState;
using runner::sweep::Variant;

namespace {

/// Four complete trials of 20 steps, 64 samples and 1000 tokens each, in this order.
std::string reached(const std::string& stop, std::int64_t worked_ms = 0) {
  runner::core::Diagnostics diagnostics;
  const auto sweep =
      tests::read_sweep("  parameters: {vars.width: {values: [8, 16]}}\n  stop: " + stop + "\n", diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(sweep.has_value());
  CHECK(has_limits(*sweep));
  const tests::TempDir dir;
  runner::sweep::StudyInfo info;
  info.name = "tiny-1";
  const auto study = Study::create(dir.path(), info).value();
  study->add_worker(1);
  Study::Demand demand;
  demand.variants_max = 4;
  demand.propose = [](const std::vector<Variant>& variants, const std::vector<Trial>&) {
    return Variant{static_cast<std::int64_t>(variants.size()), {0}, ""};
  };
  runner::sweep::StudyCounters counters(*sweep);
  for (const double value : {0.5, 0.4, 0.39, 0.6}) {
    const auto trial = study->claim(demand);
    REQUIRE(trial.has_value());
    runner::sweep::TrialEnd end;
    end.state = TrialState::kComplete;
    end.value = value;
    end.spent = {20, 64, 1000};
    study->end(trial->number, end, 2);
    if (trial->number == 1) counters.update(*study);  // the number of queries makes no difference
  }
  runner::sweep::RegretMonitor regret(*sweep);
  return reached_limit(*sweep, *study, counters.update(*study), worked_ms, regret);
}

}  // namespace

TEST_CASE("a limit is reached when what was done says so", "[sweep][limits]") {
  struct Case {
    const char *name, *stop;
    std::int64_t worked_ms;
    const char* reason;
  };
  const Case cases[] = {
      {"the target", "{target: 0.4}", 0, "target 0.4 is reached by variant 2"},
      {"not yet", "{target: 0.3}", 0, ""},
      {"steps", "{max_steps: 80}", 0, "max_steps 80 is used up: 80"},
      {"not all steps", "{max_steps: 81}", 0, ""},
      {"samples", "{max_samples: 200}", 0, "max_samples 200 is used up: 256"},
      {"tokens", "{max_tokens: 4.0e+3}", 0, "max_tokens 4000 is used up: 4000"},
      {"time", "{max_time: 2s}", 2000, "max_time 2.0 s is over"},
      {"not all time", "{max_time: 2s}", 1999, ""},
      {"no improvement", "{patience: 1}", 0, "patience 1 is used up: no better variant since"},
      {"some improvement", "{patience: 2}", 0, ""},
      {"no improvement that counts", "{patience: 2, min_delta: 0.05}", 0,
       "patience 2 is used up: no better variant since"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(reached(c.stop, c.worked_ms) == c.reason); }
  }
}

TEST_CASE("the time of a sweep is that in which there was a worker", "[sweep][limits]") {
  const tests::TempDir dir;
  runner::sweep::StudyInfo info;
  info.name = "tiny-1";
  const auto study = Study::create(dir.path(), info).value();
  const std::int64_t one = study->add_worker(1000), two = study->add_worker(1500);
  study->mark_worker_active(one, 2000);
  study->mark_worker_active(two, 1800);
  const std::int64_t later = study->add_worker(9000);
  study->mark_worker_active(later, 9500);
  CHECK(study->worked_ms() == 1500);
  CHECK(study->worked_ms(later, 9700) == 1700);  // not only once that is written down
  CHECK(study->end_reason().empty());
  study->set_end_reason("max_time 1.5 s is over");
  CHECK(Study::open(dir.path()).value()->end_reason() == "max_time 1.5 s is over");
}
