#include "runner/cli/training_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "runner/core/error.h"

namespace runner::cli {
namespace {

constexpr std::string_view kStopped = "stopped by a signal before training began; run the same command to start it\n";

std::atomic<int> exit_status{core::kExitResumable};  // a handler can access nothing else
std::atomic<bool> is_over{false};

void leave(int) {
  if (!is_over) static_cast<void>(!::write(STDERR_FILENO, kStopped.data(), kStopped.size()));
  _exit(exit_status);
}

void ignore(int) {}

/// A signal that is ignored stays ignored: SIGHUP under `nohup`.
void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {}, before = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, &before);
  if (before.sa_handler == SIG_IGN) sigaction(signal, &before, nullptr);
}

}  // namespace

void fail_writes_at_size_limit() { handle(SIGXFSZ, ignore); }

void handle_training_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM, SIGHUP}) handle(signal, leave);
  handle(SIGPIPE, ignore);
  fail_writes_at_size_limit();
}

void leave_on_signal_with(int status) {
  exit_status = status;
  is_over = true;
}

}  // namespace runner::cli
