#include "runner/train/experiment/progress.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "runner/train/experiment/accumulation.h"

namespace runner::train {
namespace {

using Unit = core::Interval::Unit;

Progress at(std::int64_t step, double epoch = 0, double seconds = 0) {
  Progress progress;
  progress.step = step;
  progress.micro_batches = 2 * step;
  progress.samples = 10 * step;
  progress.tokens = 100 * step;
  progress.epoch = epoch;
  progress.seconds = seconds;
  return progress;
}

}  // namespace

TEST_CASE("an interval is due when it has elapsed once more", "[train][progress]") {
  struct Case {
    const char* name;
    core::Interval interval;
    Progress before, after;
    bool due;
  };
  const Case cases[] = {
      {"on the step", {Unit::kSteps, 5}, at(4), at(5), true},
      {"between", {Unit::kSteps, 5}, at(5), at(6), false},
      {"micro-batches passed over", {Unit::kBatches, 3}, at(1), at(2), true},
      {"tokens", {Unit::kTokens, 250}, at(2), at(3), true},
      {"samples", {Unit::kSamples, 100}, at(8), at(9), false},
      {"an epoch made of thirds",
       {Unit::kEpochs, 1},
       at(2, 1.0 / 3 + 1.0 / 3),
       at(3, 1.0 / 3 + 1.0 / 3 + 1.0 / 3),
       true},
      {"half an epoch", {Unit::kEpochs, 0.5}, at(1, 0.4), at(2, 0.6), true},
      {"time", {Unit::kSeconds, 60}, at(1, 0, 59.9), at(2, 0, 60.1), true},
      {"a tenth of the training", {Unit::kDuration, 0.1}, at(9), at(10), true},
      {"never", {Unit::kSteps, 0}, at(9), at(10), false},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(due(c.interval, c.before, c.after, 100) == c.due); }
  }
}

TEST_CASE("the first limit reached ends the training", "[train][progress]") {
  const EpochShape shape{.samples = 100, .micro_batch_size = 5, .accumulation_steps = 2, .tokens_per_sample = 64};
  CHECK(total_steps({.max_steps = 25}, shape) == 25);
  CHECK(total_steps({.max_epochs = 2.5}, shape) == 25);
  CHECK(total_steps({.max_tokens = 6400}, shape) == 10);
  CHECK(total_steps({.max_tokens = 6401}, shape) == 11);
  CHECK(total_steps({.max_steps = 100, .max_epochs = 1}, shape) == 10);
  CHECK_FALSE(total_steps({.max_time_s = 10}, shape).has_value());

  CHECK(Limits{.max_steps = 5}.reached(at(4)).empty());
  CHECK(Limits{.max_steps = 5}.reached(at(5)) == "max_steps 5");
  CHECK(Limits{.max_epochs = 1}.reached(at(5, 1.0)) == "max_epochs 1.0");
  CHECK(Limits{.max_time_s = 60}.reached(at(5, 1.0, 61)) == "max_time " + core::format_duration(60));
}

// What the loop does, micro-batch by micro-batch: nothing of EpochShape's arithmetic is used here.
struct Walk {
  const EpochShape& shape;
  Accumulation accumulation{shape.accumulation_steps, shape.sync_with_dataloader};
  std::int64_t steps = 0, samples = 0, in_epoch = 0;

  void step() {
    bool complete = false;
    while (!complete) {
      const std::int64_t count = std::min(shape.micro_batch_size, shape.samples - in_epoch);
      samples += count;
      in_epoch += count;
      const bool ended = in_epoch == shape.samples;
      if (ended) in_epoch = 0;
      complete = accumulation.advance(ended);
    }
    ++steps;
  }
};

TEST_CASE("the length that is planned is the length that is trained, whatever is left over", "[train][progress]") {
  for (const std::int64_t samples : {1, 7, 90, 96}) {
    for (const std::int64_t micro : {1, 4, 20, 200}) {
      for (const std::int64_t window : {1, 3, 5}) {
        for (const bool sync : {true, false}) {
          const EpochShape shape{samples, micro, window, sync, 8};
          Walk walk{shape};
          for (int i = 0; i < 40; ++i) {
            walk.step();
            INFO(samples << " samples, micro-batches of " << micro << ", windows of " << window << ", sync " << sync);
            REQUIRE(shape.samples_after(walk.steps) == walk.samples);
            const double epochs = static_cast<double>(walk.samples) / static_cast<double>(samples);
            REQUIRE(total_steps({.max_epochs = epochs}, shape) == walk.steps);
            REQUIRE(total_steps({.max_tokens = static_cast<double>(8 * walk.samples)}, shape) == walk.steps);
            REQUIRE(total_steps({.max_tokens = static_cast<double>(8 * walk.samples + 1)}, shape) == walk.steps + 1);
          }
        }
      }
    }
  }
  const EpochShape shape{10, 4, 2, true, 1};
  CHECK(total_steps({.max_epochs = 1e300}, shape).value() > 1'000'000'000);
  CHECK(shape.samples_after(std::numeric_limits<std::int64_t>::max()) > 1'000'000'000);
}

TEST_CASE("counters survive their way through a checkpoint", "[train][progress]") {
  const Progress before = at(7, 1.25, 3.5);
  const Progress after = Progress::from_node(before.to_node());
  CHECK(after.step == before.step);
  CHECK(after.micro_batches == before.micro_batches);
  CHECK(after.samples == before.samples);
  CHECK(after.tokens == before.tokens);
  CHECK(after.epoch == before.epoch);
  CHECK(after.seconds == before.seconds);
}

}  // namespace runner::train
