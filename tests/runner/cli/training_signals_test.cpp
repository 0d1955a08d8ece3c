#include "runner/cli/training_signals.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <functional>

#include "runner/core/end_signals.h"
#include "tests/support/process/forked.h"

namespace runner::cli {
namespace {

/// How a process ends that does this with the handlers in place.
int end_of(const std::function<int()>& work) {
  return tests::end_of_fork([&work] {
    ::close(STDERR_FILENO);  // what the handler says is for a person
    handle_training_signals();
    return work();
  });
}

}  // namespace

TEST_CASE("a signal that asks for the end leaves as resumable until the training is over", "[cli][signals]") {
  for (const int signal : core::end_signals()) {
    CAPTURE(core::end_signal_name(signal));
    CHECK(end_of([signal] { return ::raise(signal); }) == 75);
    CHECK(end_of([signal] {
            leave_on_signal_with(1);
            return ::raise(signal);
          }) == 1);
  }
}

TEST_CASE("what was to be ignored stays ignored", "[cli][signals]") {
  const auto before = ::signal(SIGHUP, SIG_IGN);  // as nohup does
  CHECK(end_of([] {
          ::raise(SIGHUP);
          return 3;
        }) == 3);
  ::signal(SIGHUP, before);
}

TEST_CASE("a closed pipe and a file that is too large fail the call that writes", "[cli][signals]") {
  CHECK(end_of([] {
          int ends[2];
          if (::pipe(ends) != 0) return 1;
          ::close(ends[0]);
          return ::write(ends[1], "a", 1) < 0 && errno == EPIPE ? 0 : 1;
        }) == 0);
  CHECK(end_of([] {
          const rlimit none = {0, 0};
          char name[] = "/tmp/too-large-XXXXXX";
          const int file = ::mkstemp(name);
          ::unlink(name);
          ::setrlimit(RLIMIT_FSIZE, &none);
          return ::write(file, "a", 1) < 0 && errno == EFBIG ? 0 : 1;
        }) == 0);
}

TEST_CASE("a program that is started has the signals as they were", "[cli][signals]") {
  CHECK(end_of([] { return ::execl("/bin/sh", "sh", "-c", "kill -PIPE $$", nullptr); }) == 128 + SIGPIPE);
}

}  // namespace runner::cli
