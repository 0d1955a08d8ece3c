#include "runner/store/system_metrics.h"

#include <array>
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
    SystemMetrics metrics(*run, {}, core::system_clock());
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

TEST_CASE("a reading of another rank's GPU is logged once, as far as it goes", "[store][system_metrics]") {
  const OutputDir output;
  const auto run = store_test::create(store_test::new_run(output), core::system_clock());
  {
    SystemMetrics metrics(*run, {}, core::system_clock());
    const SystemMetrics other(*run, {.rank = 3, .gpu = "0000:01:00.0"}, core::system_clock());
    metrics.at_step(4);
    metrics.log_gpu(3, other.gpu_message());  // it has not read anything yet
    metrics.log_gpu(3, std::array<double, SystemMetrics::kMessage>{1, 50, 2000, 12.5, -1});
    metrics.at_step(5);
    metrics.log_gpu(3, std::array<double, SystemMetrics::kMessage>{1, 50, 2000, 12.5, -1});
    metrics.at_step(6);
    metrics.log_gpu(3, std::array<double, SystemMetrics::kMessage>{2, 60, 2000, 12.5, -1});
  }
  run->flush_durable();
  const auto points = read_series(run->run_dir(), "gpu_3_utilization_percentage", kSystemContext).value();
  REQUIRE(points.size() == 2);
  CHECK(points[0].step == 4);
  CHECK(points[0].value == 50);
  CHECK(points[1].step == 6);
  CHECK(points[1].value == 60);
  CHECK(read_series(run->run_dir(), "gpu_3_memory_usage_percentage", kSystemContext).value().front().value == 12.5);
  CHECK(read_details(run->run_dir()).value().series.size() == 3);  // this driver does not report the power
}

TEST_CASE("a watch that is over in time logs nothing", "[store][system_metrics]") {
  const OutputDir output;
  const auto run = store_test::create(store_test::new_run(output), core::system_clock());
  { SystemMetrics metrics(*run, {.interval_s = 3600}, core::system_clock()); }
  run->flush_durable();
  CHECK(read_details(run->run_dir()).value().series.empty());
}

}  // namespace runner::store
