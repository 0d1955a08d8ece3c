#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "runner/core/error.h"
#include "runner/store/annotations.h"
#include "tests/runner/store/fixture.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace runner::store;

constexpr int kRuns = 200;
constexpr int kPoints = 50;

}  // namespace

TEST_CASE("two hundred runs write at once while others list them", "[store][crowd]") {
  const tests::TempDir dir(tests::TempDir::On::kMemory);
  const auto& clock = runner::core::system_clock();
  std::atomic<int> writing = kRuns, refused = 0, unreadable = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kRuns; ++i) {
    threads.emplace_back([&] {
      try {
        NewRun run;
        run.output_dir = dir.path();
        run.run_name = "crowd";
        run.resolved_json = "{}";
        const auto writer = RunWriter::create(run, clock).value();
        for (int step = 1; step <= kPoints; ++step) store_test::log(*writer, "loss", step, step);
        writer->finish(RunStatus::kFinished, "done");
      } catch (const runner::core::RunError&) {
        ++refused;
      }
      --writing;
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      do {
        for (const RunSummary& run : list_runs(dir.path(), clock)) unreadable += run.status == RunStatus::kUnreadable;
      } while (writing > 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(refused == 0);
  CHECK(unreadable == 0);
  const auto runs = list_runs(dir.path(), clock);
  CHECK(runs.size() == kRuns);
  int whole = 0;
  for (const RunSummary& run : runs) {
    const auto points = read_series(run.run_dir, "loss");
    whole += run.status == RunStatus::kFinished && points && points.value().size() == kPoints;
  }
  CHECK(whole == kRuns);
}

TEST_CASE("concurrent annotations of a run are all written", "[store][crowd]") {
  constexpr int kPersons = 24;
  const store_test::OutputDir output;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kPersons; ++i) {
    threads.emplace_back([&, i] {
      try {
        add_tags(output.path, {"tag " + std::to_string(i)});
        add_note(output.path, i, "note " + std::to_string(i));
      } catch (const runner::core::RunError&) {
        ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(refused == 0);
  const Annotations annotations = read_annotations(output.path);
  CHECK(annotations.tags.size() == kPersons);
  CHECK(annotations.notes.size() == kPersons);
}
