#include "runner/core/end_signals.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

namespace runner::core {
namespace {

struct EndSignal {
  int number;
  std::string name;
  bool serves_profilers = false;
};

// Batch systems send most of these before the end of the time that a job has; SIGXCPU is also that of `ulimit -t`.
std::vector<EndSignal> list_of_signals() {
  std::vector<EndSignal> list = {
      {SIGINT, "SIGINT"},
      {SIGTERM, "SIGTERM"},
      {SIGHUP, "SIGHUP"},
      {SIGQUIT, "SIGQUIT"},
      {SIGUSR1, "SIGUSR1"},
      {SIGUSR2, "SIGUSR2"},
      {SIGXCPU, "SIGXCPU"},
      {SIGALRM, "SIGALRM"},
      {SIGPWR, "SIGPWR"},
      {SIGIO, "SIGIO", true},
      {SIGPROF, "SIGPROF", true},
      {SIGVTALRM, "SIGVTALRM", true},
      {SIGSTKFLT, "SIGSTKFLT", true},
  };
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal)
    list.push_back({signal, "SIGRTMIN+" + std::to_string(signal - SIGRTMIN), true});
  return list;
}

const std::vector<EndSignal>& signals() {
  static const auto* list = new std::vector(list_of_signals());  // never destroyed: handlers read it until the exit
  return *list;
}

std::atomic<bool> asked{false};  // a handler can access nothing else

}  // namespace

std::span<const int> end_signals() {
  static const auto* numbers = [] {
    auto* all = new std::vector<int>;
    for (const EndSignal& one : signals()) all->push_back(one.number);
    return all;
  }();
  return *numbers;
}

const char* end_signal_name(int signal) {
  for (const EndSignal& one : signals()) {
    if (one.number == signal) return one.name.c_str();
  }
  return nullptr;
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

SignalActions handle_end_signals(void (*handler)(int), EndSignalOptions options) {
  static std::atomic<void (*)(int)> own[8];  // handlers of this program, of which there are few
  for (auto& known : own) {
    void (*none)(int) = nullptr;
    if (known == handler || known.compare_exchange_strong(none, handler)) break;
  }
  SignalActions before;
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = options.flags;
  for (const EndSignal& one : signals()) {
    struct sigaction now = {};
    sigaction(one.number, nullptr, &now);
    const bool stays_ignored = now.sa_handler == SIG_IGN && (options.ignores_interrupt || one.number != SIGINT);
    const bool is_ours =
        now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN ||
        std::any_of(std::begin(own), std::end(own), [&](const auto& known) { return known.load() == now.sa_handler; });
    if (stays_ignored || (one.serves_profilers && !is_ours)) continue;
    sigaction(one.number, &action, nullptr);
    before.saved_.push_back({one.number, now});
  }
  return before;
}

void SignalActions::restore() const {
  for (const Saved& one : saved_) sigaction(one.signal, &one.action, nullptr);
}

bool is_asked_to_end() {
  if (asked) return true;
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return false;
  const auto all = end_signals();
  return std::any_of(all.begin(), all.end(), [&](int signal) { return sigismember(&waiting, signal) == 1; });
}

void note_asked_to_end(bool asked_now) { asked = asked_now; }

}  // namespace runner::core
