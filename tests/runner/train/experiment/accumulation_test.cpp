#include "runner/train/experiment/accumulation.h"

#include <catch2/catch.hpp>

#include <string>

namespace runner::train {
namespace {

std::string windows(std::int64_t steps, bool sync_with_dataloader, int batches, int epochs) {
  Accumulation accumulation(steps, sync_with_dataloader);
  std::string flags;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (int i = 0; i < batches; ++i) flags += accumulation.advance(i + 1 == batches) ? 'X' : '.';
    flags += ' ';
  }
  return flags;
}

}  // namespace

TEST_CASE("a window ends after its micro-batches, or early where the epoch ends", "[train][accumulation]") {
  struct Case {
    const char* name;
    std::int64_t steps;
    bool sync_with_dataloader;
    int batches;
    const char* flags;
  };
  static constexpr Case cases[] = {
      {"every micro-batch", 1, true, 3, "XXX XXX "},
      {"full windows", 2, true, 4, ".X.X .X.X "},
      {"the last window is short", 2, true, 5, ".X.XX .X.XX "},
      {"windows run on into the next epoch", 2, false, 5, ".X.X. X.X.X "},
      {"the epoch is shorter than a window", 8, true, 3, "..X ..X "},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(windows(c.steps, c.sync_with_dataloader, c.batches, 2) == c.flags); }
  }
}

TEST_CASE("the schedule moves once an optimizer step unless it is told otherwise", "[train][accumulation]") {
  const auto run = [](ScheduleClock::Options options, const std::string& flags, bool moved = true) {
    ScheduleClock clock(options);
    for (const char flag : flags) clock.after_micro_batch(flag == 'X', moved);
    return std::pair{clock.step(), clock.calls()};
  };
  CHECK(run({}, ".X.X") == std::pair<std::int64_t, std::int64_t>{2, 3});
  CHECK(run({.step_with_optimizer = false}, ".X.X") == std::pair<std::int64_t, std::int64_t>{4, 5});
  CHECK(run({.step_per_process = true, .num_processes = 2}, "XX") == std::pair<std::int64_t, std::int64_t>{4, 5});
  CHECK(run({}, "XX", false) == std::pair<std::int64_t, std::int64_t>{0, 1});
}

}  // namespace runner::train
