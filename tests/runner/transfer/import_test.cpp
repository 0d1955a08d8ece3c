#include "runner/transfer/import.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/runner/review/fixture.h"

using namespace runner::transfer;
using review_test::FixedClock;
using review_test::kPlain;
using review_test::OutputDir;
using runner::core::Diagnostics;
namespace store = runner::store;

TEST_CASE("an imported run cannot be resumed", "[transfer][import]") {
  const OutputDir output;
  FixedClock clock;
  auto own = store_test::create(store_test::new_run(output, "tiny"), clock);
  own->finish(store::RunStatus::kStopped, "SIGTERM");
  clock.now_ms += 1000;
  std::ofstream(output.path + "/tiny.csv") << "step,loss\n1,0.5\n";
  Diagnostics diagnostics;
  const auto said = runs_import({output.path, clock, kPlain}, {.paths = {output.path + "/tiny.csv"}}, diagnostics);
  REQUIRE(said);
  CHECK(said->find("  tiny: 1 metric, 1 point from ") != std::string::npos);
  const auto found = store::newest_unfinished(output.path, "tiny", clock);
  REQUIRE(found);
  CHECK(found->id == own->run_id());
}
