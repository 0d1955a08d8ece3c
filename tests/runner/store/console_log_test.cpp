#include "runner/store/console_log.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace runner::store {
namespace {

struct Log {
  Log() { std::filesystem::create_directory(dir / "logs"); }
  void add(const std::string& text) const { std::ofstream(dir / "logs/rank-0.log", std::ios::app) << text; }
  tests::TempDir dir;
};

}  // namespace

TEST_CASE("whole lines are read, each once, with what is in front of them", "[store][console]") {
  const Log log;
  std::int64_t at = 0;
  CHECK(read_console(log.dir.path(), at).empty());
  log.add("2027-01-15T08:00:00.250Z info step 10\n2027-01-15T08:00:01.000Z warning the disk is full\n  and so on\nhal");
  auto rows = read_console(log.dir.path(), at);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].text == "step 10");
  CHECK(rows[0].time_ms == 1'800'000'000'250);
  CHECK_FALSE(rows[0].is_warning);
  CHECK(rows[1].text == "the disk is full");
  CHECK(rows[1].is_warning);
  CHECK(rows[2].text == "  and so on");
  CHECK(rows[2].time_ms == 0);

  log.add("f\n");
  rows = read_console(log.dir.path(), at);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].text == "half");
  CHECK(read_console(log.dir.path(), at).empty());
}

TEST_CASE("lines in JSON are taken apart", "[store][console]") {
  const Log log;
  log.add(R"({"time":"2027-01-15T08:00:00.250Z","level":"error","message":"no \"room\""})"
          "\n{none}\n");
  std::int64_t at = 0;
  const auto rows = read_console(log.dir.path(), at);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].text == "no \"room\"");
  CHECK(rows[0].is_warning);
  CHECK(rows[1].text == "{none}");
}

}  // namespace runner::store
