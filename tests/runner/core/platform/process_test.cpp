#include "runner/core/platform/process.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
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

TEST_CASE("what a child has started dies with it where that was asked for", "[core][process]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  {
    Process process({"sh", "-c", "sleep 1000 & echo begun; wait"}, {}, Process::Lifetime::kDiesWithChildren);
    std::string line;
    REQUIRE(process.read_line(line, 60'000) == Process::Read::kLine);
  }
  close(ends[1]);
  pollfd end = {ends[0], POLLIN, 0};  // the sleeping one has inherited the other end
  REQUIRE(poll(&end, 1, 60'000) == 1);
  CHECK(end.revents == POLLHUP);
  close(ends[0]);
}

TEST_CASE("a program that is not there ends as a shell would say it", "[core][process]") {
  Process process({"/nowhere/at/all"});
  CHECK(process.wait() == 127);
}

TEST_CASE("a child that only closes its output still runs", "[core][process]") {
  Process process({"sh", "-c", "exec >&- 2>&-; exec sleep 1000"});
  std::string line;
  REQUIRE(process.read_line(line, 60'000) == Process::Read::kEnd);
  CHECK_FALSE(process.wait_for(1).has_value());
  process.send(SIGKILL);
  CHECK(process.wait_for(60'000) == 128 + SIGKILL);
  process.send(SIGKILL);  // without effect
  CHECK(process.wait() == 128 + SIGKILL);
}

TEST_CASE("a line beyond the limit comes in pieces", "[core][process]") {
  Process process({"printf", "12345678\\n\\n1234"});
  std::string line, all;
  while (process.read_line(line, 60'000, 4) == Process::Read::kLine) all += line + "|";
  CHECK(all == "1234|5678||1234|");
}

TEST_CASE("a child that prints forever and does not read is killed", "[core][process]") {
  Process process({"yes"}, {}, Process::Lifetime::kDiesWithParent, Process::Input::kPipe);
  CHECK(process.write(std::string(1 << 20, 'x'), 100) == Process::Write::kTimeout);
}

TEST_CASE("a child has the signals of its parent, and one that outlives it has them all", "[core][process]") {
  const auto blocked_in = [](Process::Lifetime lifetime) {
    Process process({"grep", "SigBlk", "/proc/self/status"}, {}, lifetime);
    std::string line;
    process.read_line(line, 60'000);
    process.wait();
    return line;
  };
  sigset_t one, before, after;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  pthread_sigmask(SIG_SETMASK, &one, &before);
  CHECK(blocked_in(Process::Lifetime::kDiesWithParent) == "SigBlk:\t0000000000000800");
  CHECK(blocked_in(Process::Lifetime::kOutlivesParent) == "SigBlk:\t0000000000000000");
  pthread_sigmask(SIG_SETMASK, &before, &after);
  CHECK(sigismember(&after, SIGUSR2) == 1);
  CHECK(sigismember(&after, SIGTERM) == 0);
}

TEST_CASE("a child that inherits nothing has its own variables, no input, no descriptors and no blocked signals",
          "[core][process]") {
  ::setenv("ROUX_TEST_SECRET", "x", 1);
  int ends[2];
  REQUIRE(pipe(ends) == 0);  // not marked to be closed
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Process process({.command = {"/bin/sh", "-c",
                               "/usr/bin/env | grep -v ^_ | grep -v ^PWD; wc -c; ls /proc/self/fd; "
                               "grep SigBlk /proc/self/status"},
                   .environment = {{"WORD", "one"}},
                   .inherits = Process::Inherits::kNothing});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::string line, said;
  while (process.read_line(line, 60'000) == Process::Read::kLine) said += line + "|";
  CHECK(process.wait() == 0);
  close(ends[0]);
  close(ends[1]);
  ::unsetenv("ROUX_TEST_SECRET");
  // 3 is the folder that `ls` reads.
  CHECK(said == "WORD=one|0|0|1|2|3|SigBlk:\t0000000000000000|");
}

TEST_CASE("why a child did not become its program is known at once", "[core][process]") {
  Process missing({"/nowhere/at/all"}), folder({"/tmp"}), there({"true"});
  CHECK(missing.start_error() == ENOENT);
  CHECK(folder.start_error() == EACCES);
  CHECK(there.start_error() == 0);
}

TEST_CASE("what a child left running is found by its group after it has ended", "[core][process]") {
  Process process({"sh", "-c", "sleep 1000 & echo begun"}, {}, Process::Lifetime::kDiesWithChildren);
  std::string line;
  REQUIRE(process.read_line(line, 60'000) == Process::Read::kLine);
  while (!process.has_ended()) poll(nullptr, 0, 1);
  CHECK(process.read_line(line, 1) == Process::Read::kTimeout);  // the sleeping one has the output still
  process.send_to_all(SIGKILL);
  CHECK(process.read_line(line, 60'000) == Process::Read::kEnd);
  CHECK(process.wait() == 0);
  CHECK(process.has_ended());
}

}  // namespace runner::core
