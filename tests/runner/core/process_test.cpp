#include "runner/core/process.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <string>

#include "runner/core/error.h"

namespace runner::core {

TEST_CASE("a child is read line by line, its two streams as one, to its end", "[core][process]") {
  Process process({"sh", "-c", "echo one; echo two >&2; printf \"$WORD\"; exit 3"}, {{"WORD", "three"}});
  std::string line, all;
  while (process.read_line(line, 60'000) == Process::Read::kLine) all += line + "|";
  CHECK(all == "one|two|three|");
  CHECK(process.wait() == 3);
}

TEST_CASE("a child that says nothing is waited for as long as was asked, and can be killed", "[core][process]") {
  Process process({"sh", "-c", "echo begun; exec sleep 1000"});
  std::string line;
  REQUIRE(process.read_line(line, 60'000) == Process::Read::kLine);
  CHECK(process.read_line(line, 1) == Process::Read::kTimeout);
  process.send(SIGKILL);
  CHECK(process.read_line(line, 60'000) == Process::Read::kEnd);
  CHECK(process.wait() == 128 + SIGKILL);
}

TEST_CASE("a program that is not there ends as a shell would say it", "[core][process]") {
  Process process({"/nowhere/at/all"});
  CHECK(process.wait() == 127);
}

}  // namespace runner::core
