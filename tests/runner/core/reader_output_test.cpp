#include "runner/core/reader_output.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "runner/core/end_signals.h"
#include "tests/support/process/forked.h"

namespace runner::core {
namespace {

enum class Reader { kFullPipe, kStoppedTerminal };

/// Makes standard output and error what no reader takes anything from. The end of the reader.
int block_output(Reader reader) {
  int ends[2] = {-1, -1};
  if (reader == Reader::kFullPipe) {
    if (::pipe(ends) != 0) ::_exit(9);
    const int full = ::open(("/proc/self/fd/" + std::to_string(ends[1])).c_str(), O_WRONLY | O_NONBLOCK);
    const std::string page(4096, 'x');
    while (::write(full, page.data(), page.size()) > 0) {
    }
    ::close(full);
  } else {
    if (::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) != 0) ::_exit(9);
    ::tcflow(ends[1], TCOOFF);  // as Ctrl-S
  }
  ::dup2(ends[1], STDOUT_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ::close(ends[1]);
  return ends[0];
}

void note(int) {
  note_asked_to_end(true);
  never_wait_for_reader();
}

}  // namespace

TEST_CASE("output that is not read does not hold a process that is asked to end", "[core][output]") {
  const Reader reader = GENERATE(Reader::kFullPipe, Reader::kStoppedTerminal);
  SECTION("lines") {
    CHECK(tests::end_of_fork([reader] {
            block_output(reader);
            note_asked_to_end(true);
            for (int i = 0; i < 100; ++i) {
              if (write_to_reader(STDERR_FILENO, "saving\n")) return 1;
            }
            return 0;
          }) == 0);
  }
  SECTION("what stdio is just writing") {
    CHECK(tests::end_of_fork([reader] {
            block_output(reader);
            handle_end_signals(note, {.flags = SA_RESTART});
            const pid_t parent = ::getpid();
            if (::fork() == 0) {  // asks for the end over and over, as the write may not have begun
              while (::getppid() == parent) {
                ::kill(parent, SIGTERM);
                ::poll(nullptr, 0, 1);
              }
              ::_exit(0);
            }
            const std::string page(100'000, 'x');
            return std::fwrite(page.data(), 1, page.size(), stdout) == page.size() && std::fflush(stdout) == 0;
          }) == 0);
  }
  SECTION("a signal that is blocked and waits") {
    CHECK(tests::end_of_fork([reader] {
            block_output(reader);
            sigset_t all;
            sigfillset(&all);
            sigprocmask(SIG_BLOCK, &all, nullptr);
            ::raise(SIGTERM);
            return write_to_reader(STDOUT_FILENO, "step 3\n") ? 1 : 0;
          }) == 0);
  }
}

TEST_CASE("a reader that is only slow gets everything", "[core][output]") {
  CHECK(tests::end_of_fork([] {
          const int end = block_output(Reader::kFullPipe);
          if (::fork() == 0) {
            const std::string text(300'000, 'y');
            ::_exit(write_to_reader(STDOUT_FILENO, text) ? 0 : 1);
          }
          ::close(STDOUT_FILENO);
          ::close(STDERR_FILENO);
          std::size_t of_it = 0;
          char bytes[5'000];
          for (ssize_t got = 0; (got = ::read(end, bytes, sizeof bytes)) > 0;) {
            for (ssize_t i = 0; i < got; ++i) of_it += bytes[i] == 'y' ? 1 : 0;
          }
          return of_it == 300'000 ? 0 : 1;
        }) == 0);
}

TEST_CASE("the terminal of the shell keeps its mode", "[core][output]") {
  CHECK(tests::end_of_fork([] {
          int ends[2] = {-1, -1};
          if (::pipe(ends) != 0) return 9;
          ::dup2(ends[1], STDERR_FILENO);
          never_wait_for_reader();
          const bool is_ours = (::fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) != 0;
          return is_ours && (::fcntl(ends[1], F_GETFL) & O_NONBLOCK) == 0 ? 0 : 1;
        }) == 0);
}

}  // namespace runner::core
