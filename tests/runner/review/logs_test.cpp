#include "runner/review/logs.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/runner/review/fixture.h"

using namespace runner::review;
using review_test::FixedClock;
using review_test::kPlain;
using review_test::OutputDir;
using review_test::record_run;
using review_test::RecordedRun;
using runner::core::Diagnostics;

TEST_CASE("the logs of all ranks are printed one after the other, or merged by time", "[review][logs]") {
  const OutputDir output;
  FixedClock clock;
  const RecordedRun recorded = record_run(output, clock, "tiny", "{}", 1.5);
  const std::string folder = recorded.run_dir + "/logs";
  std::filesystem::create_directories(folder);
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
  };
  // Rank 1 logs in JSON. Its clock went back once; the lines of a rank stay in their order.
  put("rank-0.log",
      "begun\n2027-01-15T08:00:00.250Z info step 10\n2027-01-15T08:00:02.000Z warning the disk is full\n  of logs\n");
  put("rank-1.log", R"({"time":"2027-01-15T08:00:01.000Z","level":"info","message":"b"})"
                    "\n"
                    R"({"time":"2027-01-15T08:00:00.000Z","level":"info","message":"c"})"
                    "\n");
  put("rank-10.log", "2027-01-15T08:00:02.000Z info late\nno end");
  put("rank-2.log", "2027-01-15T08:00:00.250Z info an \x1b[31mend\n");
  put("rank-3.log.old", "not a log\n");
  const auto said = [&](bool in_order) {
    std::string text;
    Diagnostics diagnostics;
    runs_logs(
        {output.path, clock, kPlain}, {.run = "tiny", .in_order = in_order},
        [&](const std::string& line) { text += line; }, diagnostics);
    CHECK_FALSE(diagnostics.has_errors());
    return text;
  };
  const std::string r0 = "[rank 0] ", r1 = "[rank 1] ", r2 = "[rank 2] ", r10 = "[rank 10] ";
  const std::string begun = r0 + "begun\n" + r0 + "2027-01-15T08:00:00.250Z info step 10\n";
  const std::string full = r0 + "2027-01-15T08:00:02.000Z warning the disk is full\n" + r0 + "  of logs\n";
  const std::string json = r1 + R"({"time":"2027-01-15T08:00:01.000Z","level":"info","message":"b"})" + "\n" + r1 +
                           R"({"time":"2027-01-15T08:00:00.000Z","level":"info","message":"c"})" + "\n";
  const std::string end = r2 + "2027-01-15T08:00:00.250Z info an \\x1b[31mend\n";
  const std::string late = r10 + "2027-01-15T08:00:02.000Z info late\n" + r10 + "no end\n";
  CHECK(said(false) == begun + full + json + end + late);
  CHECK(said(true) == begun + end + json + full + late);

  std::filesystem::remove_all(folder);
  Diagnostics diagnostics;
  runs_logs(
      {output.path, clock, kPlain}, {.run = "tiny"}, [](const std::string&) {}, diagnostics);
  REQUIRE(diagnostics.error_count() == 1);
  CHECK(diagnostics.all()[0].message == folder + " has no logs");
  CHECK(diagnostics.all()[0].hint == "the run keeps no logs of its processes");
}
