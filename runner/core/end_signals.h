#pragma once

#include <signal.h>

#include <span>
#include <vector>

namespace runner::core {

/// The signals that ask a process to end: those whose default action ends it, the real-time ones too, but for those
/// that report an error of the process (SIGSEGV) or of a call that it made (SIGPIPE, SIGXFSZ).
std::span<const int> end_signals();
/// `SIGTERM`, `SIGRTMIN+3`; null where it is none of end_signals(). A handler of one may call it.
const char* end_signal_name(int signal);
/// Whether this process ignores the signal, as it does SIGHUP under `nohup`.
bool is_ignored(int signal);

struct EndSignalOptions {
  int flags = 0;                  ///< of sigaction()
  bool ignores_interrupt = true;  ///< false: SIGINT is handled even where it is ignored
};

/// What this process does on some signals.
class SignalActions {
 public:
  void restore() const;

 private:
  friend SignalActions handle_end_signals(void (*handler)(int), EndSignalOptions options);
  struct Saved {
    int signal;
    struct sigaction action;
  };
  std::vector<Saved> saved_;
};

/// From here on `handler` handles each of end_signals(). One that is ignored stays ignored; one that a profiler in this
/// process uses (SIGPROF, SIGVTALRM, SIGIO and the like) stays its own. Returns what was done before.
SignalActions handle_end_signals(void (*handler)(int), EndSignalOptions options = {});

/// Whether this process was asked to end: a handler has noted that, or one of end_signals() is blocked and waits.
bool is_asked_to_end();
/// For a handler and for what reads signals itself.
void note_asked_to_end(bool asked);

}  // namespace runner::core
