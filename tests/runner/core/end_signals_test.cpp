#include "runner/core/end_signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/support/process/forked.h"

namespace runner::core {
namespace {

void other_handler(int) {}
void leave(int) { ::_exit(3); }

}  // namespace

TEST_CASE("each signal whose default ends a process without an error of it is in the list", "[core][signals]") {
  const auto all = end_signals();
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (signal == SIGKILL || (signal > SIGSYS && signal < SIGRTMIN)) continue;  // the C library's own in between
    CAPTURE(signal);
    // Of an error of the process or of a call: it is not to be saved after.
    const int errors[] = {SIGILL, SIGABRT, SIGFPE, SIGSEGV, SIGBUS, SIGTRAP, SIGSYS, SIGPIPE, SIGXFSZ};
    const bool ends =
        tests::end_of_fork([signal] {
          ::signal(signal, SIG_DFL);
          ::signal(SIGCONT, SIG_DFL);
          return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU ? 0 : ::raise(signal);
        }) == 128 + signal;
    const bool is_error = std::find(std::begin(errors), std::end(errors), signal) != std::end(errors);
    CHECK((std::find(all.begin(), all.end(), signal) != all.end()) == (ends && !is_error));
    CHECK((end_signal_name(signal) != nullptr) == (ends && !is_error));
  }
}

TEST_CASE("signals have the names of the manual", "[core][signals]") {
  CHECK(std::string(end_signal_name(SIGQUIT)) == "SIGQUIT");
  CHECK(std::string(end_signal_name(SIGIO)) == "SIGIO");
  CHECK(std::string(end_signal_name(SIGRTMIN)) == "SIGRTMIN+0");
  CHECK(std::string(end_signal_name(SIGRTMIN + 3)) == "SIGRTMIN+3");
  CHECK(end_signal_name(SIGSEGV) == nullptr);
  CHECK(end_signal_name(0) == nullptr);
}

TEST_CASE("a signal that is ignored or that a profiler uses is not taken over", "[core][signals]") {
  struct Case {
    const char* name;
    int signal;
    void (*before)(int);
    bool ignores_interrupt;
    bool is_taken;
  };
  const Case cases[] = {
      {"default", SIGTERM, SIG_DFL, true, true},
      {"ignored, as under nohup", SIGHUP, SIG_IGN, true, false},
      {"ignored as well", SIGQUIT, SIG_IGN, false, false},
      {"an ignored interrupt", SIGINT, SIG_IGN, true, false},
      {"an ignored interrupt that is wanted", SIGINT, SIG_IGN, false, true},
      {"handled by something else", SIGTERM, other_handler, true, true},
      {"of a profiler", SIGPROF, other_handler, true, false},
      {"of no profiler", SIGPROF, SIG_DFL, true, true},
      {"of a library's timers", SIGRTMIN + 2, other_handler, true, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(tests::end_of_fork([&c] {
            ::signal(c.signal, c.before);
            const SignalActions before = handle_end_signals(leave, {.ignores_interrupt = c.ignores_interrupt});
            ::raise(c.signal);
            before.restore();
            struct sigaction now = {};
            sigaction(c.signal, nullptr, &now);
            return now.sa_handler == c.before ? 1 : 2;
          }) == (c.is_taken ? 3 : 1));
  }
}

TEST_CASE("a process is asked to end by a signal that it has blocked, too", "[core][signals]") {
  CHECK(tests::end_of_fork([] {
          sigset_t all;
          sigfillset(&all);
          sigprocmask(SIG_BLOCK, &all, nullptr);
          if (is_asked_to_end()) return 1;
          ::raise(SIGCHLD);
          if (is_asked_to_end()) return 2;
          ::raise(SIGTERM);
          return is_asked_to_end() ? 0 : 3;
        }) == 0);
}

}  // namespace runner::core
