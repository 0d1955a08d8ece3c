// Accelerate's scheduler wrapper: which step of its own the schedule stands at after every micro-batch.

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "components/lr_scheduler/lr_scheduler.h"
#include "runner/train/experiment/accumulation.h"
#include "tests/support/blocks.h"
#include "tests/support/golden.h"
#include "tests/support/torch_schedules.h"

namespace runner::train {
namespace {

using tests::golden::Json;
using Factor = std::function<double(std::int64_t)>;

Factor component(const std::string& text) {
  const auto scheduler = components::lr_scheduler::build(tests::block("lr_scheduler", text), {});
  return [scheduler](std::int64_t step) { return scheduler->factor(step); };
}

/// The inner schedule as ours, or nothing where there is no such component.
Factor inner_schedule(const Json& schedule, double base_lr) {
  const std::string type = schedule.at("type");
  if (type == "lambda_linear") return component("{type: linear, total_steps: " + schedule.at("total").dump() + "}");
  if (type == "warmup_linear") {
    return component("{type: linear, total_steps: " + schedule.at("total").dump() +
                     ", warmup_steps: " + schedule.at("warmup").dump() + "}");
  }
  if (type == "lambda_geometric") return component("{type: exponential, gamma: " + schedule.at("gamma").dump() + "}");
  if (type == "ReduceLROnPlateau") return nullptr;  // moves with evaluations, not with steps
  Json args = schedule;
  args.erase("type");
  const auto block = tests::torch_schedule(type, args, base_lr);
  if (!block) return nullptr;
  const Factor factor = component(block->dump());
  if (type != "OneCycleLR" && type != "CyclicLR") return factor;
  const double scale = args.at("max_lr").get<double>() / base_lr;
  return [factor, scale](std::int64_t step) { return factor(step) * scale; };
}

void check_stepping(const Json& input, const Json& expected, const Factor& factor) {
  Accumulation accumulation(input.at("accumulation_steps"), true);
  ScheduleClock::Options options;
  options.step_with_optimizer = input.at("step_with_optimizer");
  options.step_per_process = !input.at("split_batches").get<bool>();
  options.num_processes = input.at("num_processes");
  ScheduleClock clock(options);
  const double base = input.at("base_lr");
  tests::check_near(base * factor(0), expected.at("lr0"), 1e-6, 1e-7);
  std::vector<double> lr;
  std::vector<bool> flags;
  Json expected_lr = expected.at("lr");
  // torch takes one step past the end of this one, along a curve that may rise again. Here the last value stays.
  const Json& schedule = input.at("schedule");
  const bool has_end = schedule.at("type") == "OneCycleLR";
  const std::int64_t last = has_end ? schedule.at("total_steps").get<std::int64_t>() - 1 : 0;
  const int micro_steps = input.at("micro_steps");  // the length of the loader
  for (int i = 0; i < micro_steps; ++i) {
    flags.push_back(accumulation.advance(i + 1 == micro_steps));
    clock.after_micro_batch(flags.back(), true);
    lr.push_back(base * factor(clock.step()));
    if (has_end && clock.step() > last) expected_lr[lr.size() - 1] = base * factor(last);
  }
  CHECK(Json(flags) == expected.at("sync_flags"));
  tests::check_near(lr, expected_lr, 1e-6, 1e-7);
}

}  // namespace

TEST_CASE("the schedule stands where Accelerate's wrapper puts it", "[golden][lr_schedules][wrapped_stepping]") {
  tests::golden::Coverage coverage("lr_schedules");
  for (const auto& c : tests::golden::read_topic("lr_schedules")) {
    if (c.kind != "wrapped_stepping") continue;  // lr_schedules_test.cpp reads those
    const Factor factor = inner_schedule(c.input.at("schedule"), c.input.at("base_lr"));
    if (!factor) {
      coverage.not_covered(c.kind, c.input.at("schedule").at("type"));
      continue;
    }
    INFO(c.name);
    check_stepping(c.input, c.expected, factor);
    coverage.checked(c.kind);
  }
  coverage.finish();
}

}  // namespace runner::train
