#include "runner/cli/proof/kill_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace {

using namespace runner::cli;

/// Twenty steps of 10 ms; saves at 8, 16 and 20, evaluations at 10 and 20.
Trace trace_of_twenty() {
  Trace trace;
  trace.read_line("run runs/tiny-1", 300'000);
  for (int step = 1; step <= 20; ++step) {
    const std::int64_t at_us = 300'000 + step * 10'000;
    trace.read_line("trained step " + std::to_string(step), at_us);
    if (step % 10 == 0) trace.read_line("evaluating val at step " + std::to_string(step), at_us + 1000);
    if (step % 8 != 0 && step != 20) continue;
    trace.read_line("saving step " + std::to_string(step), at_us + 2000);
    trace.read_line("committed step " + std::to_string(step), at_us + 5000);
  }
  trace.read_line("sample at step 20:", 520'000);
  trace.ended_us = 530'000;
  return trace;
}

std::vector<std::string> names(const std::vector<KillCase>& cases) {
  std::vector<std::string> names;
  for (const KillCase& one : cases) names.push_back(one.what.substr(0, one.what.find(':')));
  return names;
}

}  // namespace

TEST_CASE("a trace is read from the lines of a verbose run", "[cli][kill_plan]") {
  const Trace trace = trace_of_twenty();
  CHECK(trace.trained.size() == 20);
  CHECK(trace.saving.size() == 3);
  CHECK(trace.saved.size() == 3);
  CHECK(trace.evaluating.size() == 2);
  CHECK(trace.started_us == 300'000);
}

TEST_CASE("random kills are spread over the whole run, and the same seed gives the same ones", "[cli][kill_plan]") {
  const Trace trace = trace_of_twenty();
  KillOptions options;
  options.random = 10;
  options.adversarial = false;
  std::mt19937_64 first(3), again(3);
  const auto cases = plan_kills(trace, options, first);
  REQUIRE(cases.size() == 10);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    // Two steps for each kill; never the last one, after which there may be nothing left to kill.
    const std::int64_t low = static_cast<std::int64_t>(2 * i) + 1;
    const std::string& line = cases[i].kills.at(0).line;
    CHECK((line == trained_line(low) || line == trained_line(std::min<std::int64_t>(low + 1, 19))));
    CHECK(cases[i].kills[0].delay_us <= 10'000);
  }
  CHECK(names(plan_kills(trace, options, again)) == names(cases));
}

TEST_CASE("every moment at which something is half done has a case", "[cli][kill_plan]") {
  std::mt19937_64 random(1);
  KillOptions options;
  options.random = 0;
  const auto cases = plan_kills(trace_of_twenty(), options, random);
  CHECK(names(cases) == std::vector<std::string>{"while starting", "before the first checkpoint",
                                                 "in the first step after a resume", "while starting again",
                                                 "during an evaluation", "as a save begins", "during a save",
                                                 "right after a commit", "during the last save", "after the last save",
                                                 "four times in one run"});
  CHECK(cases[2].kills.size() == 2);
  CHECK(cases[10].kills.size() == 4);
}

TEST_CASE("a point is reached by the line it names, whatever stands before it", "[cli][kill_plan]") {
  struct Case {
    KillPoint point;
    const char* line;
    bool reached;
  };
  const Case cases[] = {
      {{trained_line(3)}, "debug: trained step 3", true},
      {{trained_line(3)}, "debug: trained step 33", false},
      {{trained_line(3)}, "saving step 3", false},
      {{saving_line(3)}, "debug: saving step 3", true},
      {{"*"}, "debug: trained step 17", true},
      {{"*"}, "resuming runs/tiny-1 from runs/tiny-1/checkpoints/step-000008", false},
      {{committed_line(8)}, "debug: committed step 8", true},
  };
  for (const Case& c : cases) {
    INFO(c.line);
    CHECK(is_reached(c.point, c.line) == c.reached);
  }
}
