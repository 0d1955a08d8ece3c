#include "runner/store/system_metrics.h"

#include <catch2/catch.hpp>

#include "tests/runner/store/fixture.h"

namespace runner::store {
namespace {

using store_test::OutputDir;

}  // namespace

TEST_CASE("the use of the machine is a series of its own context", "[store][system_metrics]") {
  const OutputDir output;
  const auto run = store_test::create(store_test::new_run(output), core::system_clock());
  {
    SystemMetrics metrics(*run, 0, core::system_clock());
    metrics.at_step(7);
    metrics.log();
    metrics.at_step(9);
    metrics.log();
  }
  run->flush_durable();
  const auto points = read_series(run->run_dir(), "process_memory_rss_megabytes", kSystemContext).value();
  REQUIRE(points.size() == 2);
  CHECK(points[0].step == 7);
  CHECK(points[1].step == 9);
  CHECK(points[1].value > 1);
  CHECK(read_series(run->run_dir(), "system/process_memory_rss_megabytes").value().size() == 2);
}

TEST_CASE("a watch that is over in time logs nothing", "[store][system_metrics]") {
  const OutputDir output;
  const auto run = store_test::create(store_test::new_run(output), core::system_clock());
  { SystemMetrics metrics(*run, 3600, core::system_clock()); }
  run->flush_durable();
  CHECK(read_details(run->run_dir()).value().series.empty());
}

}  // namespace runner::store
