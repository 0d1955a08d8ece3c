#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/json.h"
#include "runner/store/run_writer.h"
#include "tests/runner/store/fixture.h"
#include "trackers/follow.h"
#include "trackers/tracker.h"

namespace tracker_tests {

/// Instead of waiting, something happens; false when it is time to leave.
struct Meanwhile final : trackers::Waiter {
  bool wait(std::int64_t ms) override {
    waited_ms.push_back(ms);
    return next && next();
  }
  std::function<bool()> next;
  std::vector<std::int64_t> waited_ms;
};

/// A run that a test writes, and a tracker of a recipe that follows it.
struct FollowedRun {
  FollowedRun() : writer(store_test::create(store_test::new_run(output), clock)) {
    run.dir = writer->run_dir();
    run.id = writer->run_id();
    run.name = run.project = "tiny";
    run.created_ms = clock.now_ms;
    run.config = runner::core::parse_json(store_test::new_run(output).resolved_json).value();
    run.tags = {"keep"};
    run.command_line = {"roux", "run", "recipe.yaml"};
  }

  void log(std::int64_t step, double value, const std::string& name = "loss") {
    store_test::log(*writer, name, step, value);
  }
  void text(std::int64_t step, const std::string& name, const std::string& text) {
    auto data = runner::core::Node::mapping();
    data.set("name", runner::core::Node::string(name));
    data.set("text", runner::core::Node::string(text));
    writer->event("text", step, data);
  }
  void commit() { writer->flush_durable(); }

  /// What a process of its own does: a tracker that knows nothing but what is on record.
  trackers::FollowResult follow(const std::string& block, bool until_end = false, const std::string& name = "tool") {
    const auto tracker = trackers::build(runner::core::parse_json(block).value(), {name});
    return trackers::follow(run, *tracker, {name, until_end}, clock, meanwhile);
  }

  store_test::OutputDir output;
  store_test::FixedClock clock;
  std::unique_ptr<runner::store::RunWriter> writer;
  trackers::Run run;
  Meanwhile meanwhile;
};

}  // namespace tracker_tests
