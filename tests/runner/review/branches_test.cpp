#include "runner/review/branches.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "runner/review/runs.h"
#include "tests/runner/review/fixture.h"

using namespace runner::review;
using review_test::FixedClock;
using review_test::kPlain;
using review_test::OutputDir;
using runner::core::Diagnostics;
using runner::core::Node;
namespace store = runner::store;

TEST_CASE("a branch says where it left its parent and why, and what was abandoned is kept apart",
          "[review][branches]") {
  const OutputDir output;
  FixedClock clock;
  std::string run_dir;
  {
    auto writer = store_test::create(store_test::new_run(output, "tiny"), clock);
    run_dir = writer->run_dir();
    for (std::int64_t step = 1; step <= 4; ++step) store_test::log(*writer, "loss", step, static_cast<double>(step));
    writer->finish(store::RunStatus::kStopped, "SIGTERM");
  }
  clock.now_ms += 60'000;
  {
    auto writer = std::move(store::RunWriter::resume({run_dir, 2, 0}, clock)).value();
    for (std::int64_t step = 3; step <= 6; ++step) {
      store_test::log(*writer, "loss", step, 10.0 * static_cast<double>(step));
    }
    writer->finish(store::RunStatus::kFinished, "6 steps are done");
  }
  const RunsContext context{output.path, clock, kPlain};
  Diagnostics diagnostics;
  const std::string page = runs_show(context, {.run = "tiny"}, diagnostics).value();
  CHECK(page.find("branches\n"
                  "  0  from the start, to step 4, abandoned after step 2; 2027-01-15 08:00:00 UTC\n"
                  "  1  from branch 0 at step 2, to step 6 (current); resumed after stopped: SIGTERM; "
                  "2027-01-15 08:01:00 UTC\n") != std::string::npos);
  const std::string head = page.substr(0, page.find("metrics"));
  CHECK(head.find("\n  step") == head.rfind("\n  step"));

  struct Case {
    const char* branch;
    const char* points;
  };
  static constexpr Case cases[] = {
      {"", "[[1, 1.0], [2, 2.0], [3, 30.0], [4, 40.0], [5, 50.0], [6, 60.0]]\n"},
      {"1", "[[1, 1.0], [2, 2.0], [3, 30.0], [4, 40.0], [5, 50.0], [6, 60.0]]\n"},
      {"0", "[[1, 1.0], [2, 2.0], [3, 3.0], [4, 4.0]]\n"},
      {"all",
       "[{\"branch\": 1, \"abandoned\": false, \"points\": [[1, 1.0], [2, 2.0], [3, 30.0], [4, 40.0], [5, 50.0], [6, "
       "60.0]]}, {\"branch\": 0, \"abandoned\": true, \"points\": [[3, 3.0], [4, 4.0]]}]\n"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.branch);
    CHECK(runs_show(context, {.run = "tiny", .metric = "loss", .format = "json", .branch = c.branch}, diagnostics) ==
          c.points);
  }
  const std::string plot =
      runs_compare(context, {.runs = {"tiny", "tiny"}, .metric = "loss", .branch = "all"}, diagnostics).value();
  CHECK(plot.find("branch 0, abandoned") != std::string::npos);
  CHECK_FALSE(diagnostics.has_errors());

  CHECK(runs_show(context, {.run = "tiny", .branch = "0"}, diagnostics).value().find("\n  loss ") != std::string::npos);
  CHECK_FALSE(runs_show(context, {.run = "tiny", .metric = "loss", .branch = "7"}, diagnostics));
  CHECK_FALSE(runs_show(context, {.run = "tiny", .branch = "all"}, diagnostics));
  CHECK(runner::core::render(diagnostics, {}) ==
        "error: " + run_dir + "/run.db has no branch 7\n  hint: it has 0 to 1\n" +
            "error: --branch all needs --metric\n"
            "  hint: add --metric NAME; without it the page lists the branches\n");
}

TEST_CASE("a branch ends at its last step, logged or not", "[review][branches]") {
  const OutputDir output;
  FixedClock clock;
  std::string run_dir;
  {
    auto writer = store_test::create(store_test::new_run(output, "tiny"), clock);
    run_dir = writer->run_dir();
    store_test::log(*writer, "loss", 10, 1.0);
    writer->event("checkpoint", 14, Node::mapping());
    writer->finish(store::RunStatus::kStopped, "SIGTERM");
  }
  {
    auto writer = std::move(store::RunWriter::resume({run_dir, 14, 0}, clock)).value();
    store_test::log(*writer, "loss", 20, 1.0);
    writer->event("checkpoint", 25, Node::mapping());
    writer->finish(store::RunStatus::kFinished, "25 steps are done");
  }
  Diagnostics diagnostics;
  const std::string page = runs_show({output.path, clock, kPlain}, {.run = "tiny"}, diagnostics).value();
  CHECK(page.find("\n  0  from the start, to step 14; ") != std::string::npos);
  CHECK(page.find("\n  1  from branch 0 at step 14, to step 25 (current); ") != std::string::npos);
}

TEST_CASE("a branch that a rollback opened says what was wrong", "[review][branches]") {
  const OutputDir output;
  FixedClock clock;
  auto writer = store_test::create(store_test::new_run(output, "tiny"), clock);
  for (std::int64_t step = 1; step <= 3; ++step) store_test::log(*writer, "loss", step, static_cast<double>(step));
  Node what = Node::mapping();
  what.set("what", Node::string("the loss is nan"));
  writer->event("rollback", 3, what);
  writer->rewind(1);
  for (std::int64_t step = 2; step <= 5; ++step) store_test::log(*writer, "loss", step, 0.5);
  writer->finish(store::RunStatus::kFinished, "5 steps are done");
  Diagnostics diagnostics;
  const std::string page = runs_show({output.path, clock, kPlain}, {.run = "tiny"}, diagnostics).value();
  CHECK(page.find("\n  0  from the start, to step 3, abandoned after step 1; ") != std::string::npos);
  CHECK(page.find("\n  1  from branch 0 at step 1, to step 5 (current); rolled back: the loss is nan; ") !=
        std::string::npos);
}
