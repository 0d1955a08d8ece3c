#include "runner/train/observe/signals.h"

#include <signal.h>
#include <unistd.h>

#include <mutex>

#include "runner/core/end_signals.h"
#include "runner/core/reader_output.h"

namespace runner::train {
namespace {

std::mutex watching;  // several trainings of a process may begin at once
int watches = 0;
std::atomic<int> pending{0};  // a signal handler can use nothing else
core::SignalActions previous;

void on_signal(int signal) {
  const int before = pending.exchange(signal);
  core::note_asked_to_end(true);
  core::never_wait_for_reader();
  if (signal == SIGINT && before != 0) _exit(128 + SIGINT);
}

}  // namespace

SignalWatch::SignalWatch(const std::atomic<int>* other) : other_(other) {
  const std::lock_guard lock(watching);
  if (watches++ > 0) return;
  pending = 0;
  core::note_asked_to_end(false);
  previous = core::handle_end_signals(on_signal, {.flags = SA_RESTART, .ignores_interrupt = false});
}

SignalWatch::~SignalWatch() {
  const std::lock_guard lock(watching);
  if (--watches > 0) return;
  previous.restore();
}

int SignalWatch::number() const {
  const int own = pending.load();
  return own != 0 || other_ == nullptr ? own : other_->load();
}

const char* SignalWatch::name_of(int signal) { return core::end_signal_name(signal); }

}  // namespace runner::train
