#include "runner/train/observe/time_limit.h"

#include <catch2/catch.hpp>

namespace runner::train {
namespace {

class StandingClock final : public core::Clock {
 public:
  std::int64_t wall_ms() const override { return 0; }
  std::int64_t monotonic_ns() const override { return now_s * 1'000'000'000; }
  std::int64_t now_s = 1000;
};

constexpr double kMinute_s = 60, kHour_s = 3600;

sections::launch::Config launch(std::optional<double> limit_s, std::optional<double> margin_s = {}) {
  sections::launch::Config config;
  config.time_limit = limit_s;
  config.save_margin = margin_s;
  return config;
}

}  // namespace

TEST_CASE("the time limit leaves room for the step and the save", "[train][time_limit]") {
  StandingClock clock;
  const TimeLimit limit(launch(kHour_s, kMinute_s), 100, clock);  // the process is 100 s old
  struct Case {
    std::int64_t later_s;
    double next_s, save_s;
    bool reached;
  };
  static constexpr Case cases[] = {
      {0, 1, 0, false},     {3438, 1, 0, false},  // 100 + 3438 + 1 + 60 = 3599
      {3439, 1, 0, true},   {3438, 2, 0, true},
      {3438, 1, 30, false}, {3438, 1, 30.5, true},  // twice the save is more than the margin
      {9999, 0, 0, true},
  };
  for (const Case& c : cases) {
    INFO(c.later_s << " " << c.next_s << " " << c.save_s);
    clock.now_s = 1000 + c.later_s;
    CHECK(limit.reached(c.next_s, c.save_s).empty() != c.reached);
  }
  CHECK(limit.reached(0, 45) == "time_limit 1 h 00 min (1 min 30 s of it reserved for the save)");
}

TEST_CASE("without save_margin a tenth is kept, at most half a minute; without a limit nothing ends",
          "[train][time_limit]") {
  const auto reached = [](std::optional<double> limit_s, std::int64_t later_s) {
    StandingClock at;
    const TimeLimit time(launch(limit_s), 0, at);
    at.now_s += later_s;
    return !time.reached(0, 0).empty();
  };
  CHECK_FALSE(reached(50, 44));
  CHECK(reached(50, 45));
  CHECK_FALSE(reached(kHour_s, 3569));
  CHECK(reached(kHour_s, 3570));
  CHECK_FALSE(reached(std::nullopt, 1'000'000));
}

}  // namespace runner::train
