#include "runner/review/tail.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "tests/runner/review/fixture.h"

using namespace runner::review;
using review_test::FixedClock;
using review_test::kPlain;
using review_test::OutputDir;
using runner::core::Diagnostics;
namespace store = runner::store;

TEST_CASE("a run is followed while it is written, and to its end", "[review][tail]") {
  const OutputDir output;
  FixedClock clock;
  auto writer = store_test::create(store_test::new_run(output), clock);
  const auto log = [&](std::int64_t step) {
    store_test::log(*writer, "loss", step, static_cast<double>(step));
    store_test::log(*writer, "loss", step, 10.0 * static_cast<double>(step), "val");
    writer->flush_durable();
  };
  for (std::int64_t step = 1; step <= 3; ++step) log(step);

  /// Instead of waiting, the run goes on.
  struct Meanwhile final : trackers::Waiter {
    bool wait(std::int64_t) override { return next(); }
    std::function<bool()> next;
  } meanwhile;
  int waits = 0;
  meanwhile.next = [&] {
    switch (++waits) {
      case 1: log(4); break;
      case 2: writer->rewind(2); break;
      case 3: log(3); break;
      case 4: writer->finish(store::RunStatus::kStopped, "SIGTERM"); break;
      default: return false;
    }
    return true;
  };
  std::string said;
  Diagnostics diagnostics;
  runs_tail(
      {output.path, clock, kPlain}, {.run = "tiny", .lines = 2}, [&](const std::string& line) { said += line; },
      meanwhile, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(said ==
        "step 2  loss 2  val/loss 20\n"
        "step 3  loss 3  val/loss 30\n"
        "step 4  loss 4  val/loss 40\n"
        "back to step 2\n"
        "step 3  loss 3  val/loss 30\n"
        "stopped: SIGTERM\n");

  said.clear();
  runs_tail(
      {output.path, clock, kPlain}, {.run = "tiny", .lines = 1, .metrics = {"val/*"}},
      [&](const std::string& line) { said += line; }, meanwhile, diagnostics);
  CHECK(said == "step 3  val/loss 30\nstopped: SIGTERM\n");
}
