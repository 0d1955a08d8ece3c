#include "runner/review/annotate.h"

#include <catch2/catch.hpp>

#include "tests/runner/review/fixture.h"

using namespace runner::review;
using review_test::FixedClock;
using review_test::kPlain;
using review_test::OutputDir;
using runner::core::Diagnostics;
namespace store = runner::store;

TEST_CASE("a run with a live writer stays where it is", "[review][remove]") {
  const OutputDir output;
  const FixedClock clock;
  auto writer = store_test::create(store_test::new_run(output), clock);
  writer->flush_durable();
  Diagnostics diagnostics;
  CHECK_FALSE(runs_remove({output.path, clock, kPlain}, {.runs = {"tiny"}, .yes = true}, diagnostics));
  REQUIRE(diagnostics.error_count() == 1);
  CHECK(diagnostics.all()[0].message.starts_with(writer->run_id() + " is running: pid "));
  writer->finish(store::RunStatus::kFinished, "");
  Diagnostics none;
  CHECK(runs_remove({output.path, clock, kPlain}, {.runs = {"tiny"}, .yes = true}, none));
  CHECK(store::list_runs(output.path, clock).empty());
}
