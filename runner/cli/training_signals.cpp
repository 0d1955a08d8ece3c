#include "runner/cli/training_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "runner/core/end_signals.h"
#include "runner/core/error.h"
#include "runner/core/reader_output.h"

namespace runner::cli {
namespace {

constexpr std::string_view kStopped = "stopped by a signal before training began; run the same command to start it\n";

std::atomic<int> exit_status{core::kExitResumable};  // a handler can access nothing else
std::atomic<bool> is_over{false};

void leave(int) {
  core::note_asked_to_end(true);
  if (!is_over) core::write_to_reader(STDERR_FILENO, kStopped);
  _exit(exit_status);
}

void ignore(int) {}

void fail_calls_instead_of(int signal) {
  if (core::is_ignored(signal)) return;
  struct sigaction action = {};
  action.sa_handler = ignore;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void fail_writes_at_size_limit() { fail_calls_instead_of(SIGXFSZ); }

void handle_training_signals() {
  core::handle_end_signals(leave, {.flags = SA_RESTART});
  fail_calls_instead_of(SIGPIPE);
  fail_writes_at_size_limit();
}

void leave_on_signal_with(int status) {
  exit_status = status;
  is_over = true;
}

}  // namespace runner::cli
