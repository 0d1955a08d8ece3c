#include "tests/support/skip.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>

#include "tests/support/process/process.h"

namespace {

tests::Process cases(const std::string& tags, const std::string& ci) {
  return tests::Process({std::filesystem::read_symlink("/proc/self/exe").string(), tags}, {{"CI", ci}});
}

}  // namespace

TEST_CASE("this case cannot run", "[.][skips]") { tests::skip("no such machine"); }

TEST_CASE("neither section of this case can run", "[.][skips]") {
  SECTION("one") { tests::skip("no one"); }
  SECTION("other") { tests::skip("no other"); }
}

TEST_CASE("this case runs", "[.][skips][runs]") { CHECK(1 + 1 == 2); }

TEST_CASE("this case fails", "[.][fails]") { CHECK(1 + 1 == 3); }

TEST_CASE("a case that cannot run is named and counted as skipped", "[skip]") {
  auto process = cases("[skips]", "");
  CHECK(process.wait() == 0);
  const std::string& said = process.output();
  CHECK(said.find("skipped: this case cannot run: no such machine\n") != std::string::npos);
  CHECK(said.find("skipped: neither section of this case can run: no one\n") != std::string::npos);
  CHECK(said.find("skipped 2 of 3 test cases\n") != std::string::npos);
}

TEST_CASE("a failure is not hidden by cases that cannot run", "[skip]") {
  auto process = cases("[skips],[fails]", "");
  CHECK(process.wait() != 0);
  CHECK(process.output().find("test cases\n") == std::string::npos);
}

TEST_CASE("in CI a case that cannot run fails", "[skip]") {
  auto process = cases("[skips]", "true");
  CHECK(process.wait() != 0);
  CHECK(process.output().find("this test cannot run here, and CI is set: no such machine") != std::string::npos);
  CHECK(process.output().find("skipped 2 of 3") == std::string::npos);
}
