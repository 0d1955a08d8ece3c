#include "runner/train/observe/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstddef>

namespace runner::train {
namespace {

// Batch systems send these before the end of the time that a job has; SIGXCPU is also that of `ulimit -t`.
constexpr std::array<int, 7> kSignals = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM, SIGHUP};
int watches = 0;
std::atomic<int> pending{0};  // a signal handler can use nothing else
std::array<struct sigaction, kSignals.size()> previous;

void on_signal(int signal) {
  const int before = pending.exchange(signal);
  if (signal == SIGINT && before != 0) _exit(128 + SIGINT);
}

}  // namespace

SignalWatch::SignalWatch(const std::atomic<int>* other) : other_(other) {
  if (watches++ > 0) return;
  pending = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &previous[i]);
    // `nohup` ignores SIGHUP.
    if (kSignals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &previous[i], nullptr);
  }
}

SignalWatch::~SignalWatch() {
  if (--watches > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
}

int SignalWatch::number() const {
  const int own = pending.load();
  return own != 0 || other_ == nullptr ? own : other_->load();
}

const char* SignalWatch::name_of(int signal) {
  switch (signal) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGUSR1: return "SIGUSR1";
    case SIGUSR2: return "SIGUSR2";
    case SIGXCPU: return "SIGXCPU";
    case SIGALRM: return "SIGALRM";
    case SIGHUP: return "SIGHUP";
    default: return nullptr;
  }
}

}  // namespace runner::train
