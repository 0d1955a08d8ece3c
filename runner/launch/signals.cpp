#include "runner/launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "runner/core/end_signals.h"
#include "runner/core/error.h"
#include "runner/core/reader_output.h"

namespace runner::launch {
Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : core::end_signals()) {
    if (signal == SIGINT || !core::is_ignored(signal)) sigaddset(&set, signal);
  }
  sigaddset(&set, SIGCHLD);  // wakes poll()
  sigprocmask(SIG_BLOCK, &set, &before_);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) throw core::RunError(std::string("cannot watch for signals: ") + std::strerror(errno));
}

Signals::~Signals() {
  close(descriptor_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> Signals::next() const {
  signalfd_siginfo info;
  while (read(descriptor_, &info, sizeof info) == sizeof info) {
    if (static_cast<int>(info.ssi_signo) == SIGCHLD) continue;
    core::note_asked_to_end(true);
    core::never_wait_for_reader();
    return static_cast<int>(info.ssi_signo);
  }
  return std::nullopt;
}

}  // namespace runner::launch
