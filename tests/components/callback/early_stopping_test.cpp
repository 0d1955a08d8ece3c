#include <catch2/catch.hpp>
#include <limits>

#include "tests/components/callback/fake_run.h"

using tests::build_callback;
using tests::FakeRun;

namespace {

/// Evaluations until the training is asked to stop, 0 when it never is; the state changes hands after every one.
int evaluations_until_stop(const std::string& recipe, const std::vector<double>& values) {
  FakeRun run;
  auto callback = build_callback(recipe).callback;
  for (std::size_t i = 0; i < values.size(); ++i) {
    run.metrics_["val/loss"] = values[i];
    callback->on_eval_end(run);
    if (!run.stopped_.empty()) return static_cast<int>(i) + 1;
    auto resumed = build_callback(recipe).callback;
    tests::hand_over_state(*callback, *resumed);
    callback = resumed;
  }
  return 0;
}

}  // namespace

TEST_CASE("early stopping counts evaluations without improvement", "[callback][early_stopping]") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  struct Case {
    const char* name;
    std::string keys;
    std::vector<double> values;
    int stops_after;
  };
  const Case cases[] = {
      {"gets better all the time", "patience: 1", {3, 2, 1, 0.5}, 0},
      {"the same is no improvement", "patience: 2", {3, 3, 3, 3}, 3},
      {"an improvement restarts the count", "patience: 2", {3, 4, 2, 3, 3, 1}, 5},
      {"worse than the best, better than the last", "patience: 2", {3, 1, 2.5, 2, 1.5}, 4},
      {"less than min_delta is none", "patience: 2, min_delta: 0.5", {3, 2.9, 2.6, 2.4}, 3},
      {"small steps add up against the best", "patience: 2, min_delta: 0.5", {3, 2.7, 2.4, 2.3, 2.2}, 5},
      {"more is better", "patience: 2, mode: max", {1, 2, 1, 3, 2, 2}, 6},
      {"NaN is no improvement", "patience: 2", {3, kNan, kNan}, 3},
      {"NaN from the start", "patience: 2", {kNan, kNan, 1}, 2},
      {"NaN does not become the best", "patience: 3", {kNan, 2, 1.5, 1.2}, 0},
      {"neither does infinity", "patience: 2, mode: max", {kInf, 1, 2}, 0},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      CHECK(evaluations_until_stop("{type: early_stopping, monitor: val/loss, " + c.keys + "}", c.values) ==
            c.stops_after);
    }
  }
}

TEST_CASE("early stopping says why it stops", "[callback][early_stopping]") {
  FakeRun run;
  const auto callback = build_callback("{type: early_stopping, monitor: val/loss, patience: 1}").callback;
  callback->on_eval_end(run);  // nothing has been measured yet
  run.metrics_["val/loss"] = 1.25;
  callback->on_eval_end(run);
  CHECK(run.stopped_ == "");
  callback->on_eval_end(run);
  CHECK(run.stopped_ == "val/loss has not improved on 1.25 for 1 evaluation");
}

TEST_CASE("a metric that the recipe does not have cannot be monitored", "[callback][early_stopping]") {
  CHECK(build_callback("{type: early_stopping, monitor: val/los}").messages ==
        "callback.yaml:1:33: error: no metric of this recipe is called \"val/los\"\n  hint: did you mean "
        "\"val/loss\"?\n");
  CHECK(build_callback("{type: early_stopping, monitor: bleu}").messages ==
        "callback.yaml:1:33: error: no metric of this recipe is called \"bleu\"\n"
        "  hint: this recipe has loss, val/loss, val/accuracy\n");
}
