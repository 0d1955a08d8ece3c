#include "runner/train/observe/signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/end_signals.h"

namespace runner::train {
namespace {

constexpr int kStayed = 3;

/// How a process ends that gets these signals one after the other: 128 + SIGINT, or kStayed when it is still there.
int end_after(const std::vector<int>& signals) {
  const pid_t child = ::fork();
  if (child == 0) {
    const SignalWatch watch;
    for (const int signal : signals) ::raise(signal);  // has been handled when it returns
    ::_exit(watch.received() != nullptr ? kStayed : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("SIGINT after another signal leaves at once, whichever that was", "[train][signals]") {
  struct Case {
    const char* name;
    std::vector<int> signals;
    int end;
  };
  const Case cases[] = {
      {"one SIGINT is answered by the loop", {SIGINT}, kStayed},
      {"SIGHUP is answered by the loop", {SIGHUP}, kStayed},
      {"SIGUSR2 is answered by the loop", {SIGUSR2}, kStayed},
      {"SIGXCPU is answered by the loop, each second", {SIGXCPU, SIGXCPU}, kStayed},
      {"SIGALRM is answered by the loop", {SIGALRM}, kStayed},
      {"SIGINT after SIGHUP", {SIGHUP, SIGINT}, 128 + SIGINT},
      {"a second SIGINT", {SIGINT, SIGINT}, 128 + SIGINT},
      {"SIGINT after SIGTERM", {SIGTERM, SIGINT}, 128 + SIGINT},
      {"SIGINT after SIGUSR1", {SIGUSR1, SIGINT}, 128 + SIGINT},
      {"SIGINT after several", {SIGUSR1, SIGTERM, SIGTERM, SIGINT}, 128 + SIGINT},
      {"SIGTERM after SIGINT waits for the save", {SIGINT, SIGTERM}, kStayed},
      {"SIGTERM twice waits for the save", {SIGTERM, SIGTERM}, kStayed},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(end_after(c.signals) == c.end); }
  }
}

TEST_CASE("each signal that asks for the end is answered by the loop", "[train][signals]") {
  for (const int signal : core::end_signals()) {
    CAPTURE(core::end_signal_name(signal));
    CHECK(end_after({signal}) == kStayed);
  }
}

TEST_CASE("a signal after the loop leaves the rest of the training whole", "[train][signals]") {
  const pid_t child = ::fork();
  if (child == 0) {
    const SignalWatch training;
    { const SignalWatch loop; }
    ::raise(SIGTERM);
    ::_exit(training.received() != nullptr ? kStayed : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kStayed);
}

}  // namespace runner::train
