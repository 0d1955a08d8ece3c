#include "runner/train/save/provenance_recorder.h"

#include <catch2/catch.hpp>
#include <future>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "tests/runner/store/fixture.h"

TEST_CASE("a git that hangs does not hold up the end of a run", "[train][provenance]") {
  const store_test::OutputDir output;
  const store_test::FixedClock clock;
  const auto writer = store_test::create(store_test::new_run(output), clock);
  std::promise<runner::artifact::GitState> never;
  runner::train::ProvenanceRecorder recorder({}, *writer, 0, never.get_future().share());
  recorder.finish(600'000);
  const auto text = runner::core::read_file(writer->run_dir() + "/capsule.json", 1 << 20).value();
  const auto provenance = runner::core::parse_json(text).value();
  REQUIRE(provenance.at_path("code.note") != nullptr);
  CHECK(provenance.at_path("code.note")->as_string() == "the run ended before git answered");
}
