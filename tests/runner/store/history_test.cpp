// What is seen of a run that was killed and resumed: each step once, each text once, nothing of what was abandoned.

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runner/store/run_reader.h"
#include "tests/runner/store/fixture.h"

namespace {

using namespace runner::store;
using runner::core::Node;
using store_test::create;
using store_test::FixedClock;
using store_test::log;
using store_test::new_run;
using store_test::OutputDir;

void say(RunWriter& writer, std::int64_t step, const std::string& name, const std::string& text) {
  Node data = Node::mapping();
  data.set("name", Node::string(name));
  data.set("text", Node::string(text));
  writer.event("text", step, data);
}

std::vector<std::string> texts(const std::string& run_dir, std::int64_t branch = -1) {
  std::vector<std::string> found;
  const auto events = read_events(run_dir, branch);
  for (const EventRow& event : events.value()) {
    if (event.kind == "text") found.push_back(std::to_string(event.step) + " " + event.data.find("text")->as_string());
  }
  return found;
}

/// Branch 0 goes to step 6 and is killed; the run resumes from its checkpoint of step 4, and what belongs to step 4 but
/// was written after that checkpoint comes once more.
std::string killed_and_resumed(const OutputDir& output, const FixedClock& clock) {
  auto writer = create(new_run(output), clock);
  const std::string run_dir = writer->run_dir();
  for (std::int64_t step = 1; step <= 6; ++step) log(*writer, "loss", step, static_cast<double>(step));
  say(*writer, 2, "sample", "two");
  say(*writer, 4, "sample", "four");
  say(*writer, 4, "note", "before the save");
  say(*writer, 6, "sample", "six, abandoned");
  writer->flush_durable();
  writer->finish(RunStatus::kStopped, "killed");
  auto resumed = RunWriter::resume({run_dir, 4, 0}, clock).value();
  say(*resumed, 4, "sample", "four again");
  for (std::int64_t step = 5; step <= 7; ++step) log(*resumed, "loss", step, 10.0 * static_cast<double>(step));
  say(*resumed, 6, "sample", "six");
  resumed->finish(RunStatus::kFinished, "");
  return run_dir;
}

}  // namespace

TEST_CASE("a resume leaves each step of a curve once and none out", "[store][history]") {
  const OutputDir output;
  const FixedClock clock;
  const std::string run_dir = killed_and_resumed(output, clock);
  std::vector<double> values;
  const auto points = read_series(run_dir, "loss");
  for (const SeriesPoint& point : points.value()) values.push_back(point.value);
  CHECK(values == std::vector<double>{1, 2, 3, 4, 50, 60, 70});
  // The abandoned branch can still be shown.
  CHECK(read_series(run_dir, "loss", "train", 0).value().back().value == 6);
}

TEST_CASE("a text is there once, though the killed run had written it already", "[store][history]") {
  const OutputDir output;
  const FixedClock clock;
  const std::string run_dir = killed_and_resumed(output, clock);
  CHECK(texts(run_dir) == std::vector<std::string>{"2 two", "4 before the save", "4 four again", "6 six"});
  CHECK(texts(run_dir, 0) == std::vector<std::string>{"2 two", "4 four", "4 before the save", "6 six, abandoned"});
}

TEST_CASE("a branch has the files that its nearest ancestor has, unless it has its own", "[store][history]") {
  const OutputDir output;
  const FixedClock clock;
  const std::string run_dir = killed_and_resumed(output, clock);
  CHECK(branch_file(run_dir, "resolved.json") == run_dir + "/resolved.json");
  std::filesystem::create_directories(branch_folder(run_dir, 1));
  std::ofstream(branch_folder(run_dir, 1) + "/resolved.json") << "{}";
  CHECK(branch_file(run_dir, "resolved.json") == run_dir + "/branches/1/resolved.json");
  CHECK(branch_file(run_dir, "resolved.json", 0) == run_dir + "/resolved.json");
  CHECK(branch_file(run_dir, "nothing.json").empty());
  CHECK(!read_lineage(run_dir, 9));
}
