#include "runner/store/in_memory_run.h"

#include <catch2/catch.hpp>

#include "tests/runner/store/fixture.h"

namespace runner::store {
namespace {

using namespace store_test;

std::string trained(const NewRun& run, double loss, int points, const core::Clock& clock) {
  auto writer = create(run, clock);
  for (int step = 1; step <= points; ++step) log(*writer, "loss", step, loss);
  writer->finish(RunStatus::kFinished, "done");
  return writer->run_dir();
}

TEST_CASE("light runs one after the other have nothing of each other", "[store][writer]") {
  const OutputDir output;
  FixedClock clock;
  const auto tables = std::make_shared<InMemoryRun>();
  NewRun run = new_run(output);
  run.light = tables;
  std::string before;
  for (const int points : {3, 20'000, 2, 1}) {  // the many take pages that the next file must not have
    CAPTURE(points);
    const std::string run_dir = trained(run, points, points, clock);
    ++clock.now_ms;
    const auto there = tables->record_of(run_dir, {"loss", "other"});
    REQUIRE(there);
    const RunRecord on_disk = read_record(run_dir, {"loss", "other"});
    for (const RunRecord& record : {*there, on_disk}) {
      CHECK(record.run.status == RunStatus::kFinished);
      CHECK(record.run.step == points);
      CHECK(record.run.metrics == std::map<std::string, double>{{"loss", points}});
      CHECK(record.run.created_ms == on_disk.run.created_ms);
      CHECK(record.curves.size() == 1);
      CHECK(record.curves.at("loss").size() == static_cast<std::size_t>(points));
    }
    CHECK_FALSE(tables->record_of(before, {}));
    if (points < 10) CHECK(std::filesystem::file_size(run_dir + "/run.db") < 64 << 10);
    before = run_dir;
  }
}

TEST_CASE("a light run that moved to its file is not read from memory", "[store][writer]") {
  const OutputDir output;
  const FixedClock clock;
  NewRun run = new_run(output);
  run.light = std::make_shared<InMemoryRun>();
  auto writer = create(run, clock);
  log(*writer, "loss", 1, 0.5);
  writer->flush_durable();
  log(*writer, "loss", 2, 0.25);
  writer->finish(RunStatus::kFinished, "");
  CHECK_FALSE(run.light->record_of(writer->run_dir(), {"loss"}));
  CHECK(read_record(writer->run_dir(), {"loss"}).curves.at("loss").size() == 2);
}

}  // namespace
}  // namespace runner::store
