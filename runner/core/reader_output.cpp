#include "runner/core/reader_output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "runner/core/end_signals.h"

namespace runner::core {
namespace {

constexpr int kLookMs = 100;  // whether a signal has come: a thread that has blocked them is not interrupted
constexpr int kPauseMs = 10;
constexpr int kPatienceMs = 1'000;       // of all writes after a signal
std::atomic<std::int64_t> waited_ms{0};  // after a signal; a handler can access nothing else

std::int64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000 + now.tv_nsec / 1'000'000;
}

bool may_block(int descriptor) {
  struct stat info = {};
  if (fstat(descriptor, &info) != 0) return false;
  return S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || (S_ISCHR(info.st_mode) && isatty(descriptor) == 1);
}

/// The same pipe or terminal, opened once more: O_NONBLOCK on the one that was inherited would be that of the shell and
/// of all its programs, too. -1 where that cannot be done, as for a socket or another user's pipe.
int opened_again(int descriptor) {
  const char* path = descriptor == STDOUT_FILENO ? "/proc/self/fd/1" : "/proc/self/fd/2";
  return ::open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/// False when nothing can be written and it is not worth waiting any longer.
bool wait_for_reader(int descriptor) {
  pollfd waiting = {descriptor, POLLOUT, 0};
  for (;;) {
    const bool is_late = is_asked_to_end();
    const std::int64_t left_ms = is_late ? kPatienceMs - waited_ms : kLookMs;
    const std::int64_t since_ms = now_ms();
    const int ready = poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, kLookMs)));
    if (is_late) waited_ms += now_ms() - since_ms;
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // write() says what is wrong
    if (is_late && left_ms <= 0) return false;
  }
}

/// A terminal may say that there is room and then take nothing.
void pause_briefly() {
  poll(nullptr, 0, kPauseMs);
  if (is_asked_to_end()) waited_ms += kPauseMs;
}

bool write_pieces(int descriptor, std::string_view text, std::size_t bytes_max) {
  while (!text.empty()) {
    if (!wait_for_reader(descriptor)) {
      errno = EAGAIN;
      return false;
    }
    const ssize_t written = ::write(descriptor, text.data(), std::min(text.size(), bytes_max));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written < 0 && errno == EAGAIN) pause_briefly();
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool write_at_once(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

bool write_to_reader(int descriptor, std::string_view text) {
  if (!may_block(descriptor)) return write_at_once(descriptor, text);
  const int own = opened_again(descriptor);
  if (own < 0) return write_pieces(descriptor, text, PIPE_BUF);
  const bool is_whole = write_pieces(own, text, text.size());
  const int error = errno;
  ::close(own);
  errno = error;
  return is_whole;
}

void never_wait_for_reader() {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    if (!may_block(descriptor)) continue;
    if (const int own = opened_again(descriptor); own >= 0) {
      dup2(own, descriptor);
      ::close(own);
    } else {
      fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    }
  }
}

}  // namespace runner::core
