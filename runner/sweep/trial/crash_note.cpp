#include "runner/sweep/trial/crash_note.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"

namespace runner::sweep {
namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr std::int64_t kFileBytesMax = 1 << 20;

std::string note_path(const std::string& folder) { return folder + "/crashes"; }

// A signal handler finds no object: what it needs is made before and lies here.
std::string path, told;
std::array<char, 64> line;  ///< `TRIAL CLAIMS `, to which the status is added
std::atomic<int> line_length = 0;
std::array<struct sigaction, kSignals.size()> before;

void append(int descriptor, const char* text, std::size_t length) {
  const ssize_t ignored = ::write(descriptor, text, length);
  static_cast<void>(ignored);  // nothing else can be done
}

/// Only what a signal handler may do. One write, so that lines of several workers do not mix.
void leave_note(int status) {
  auto length = static_cast<std::size_t>(line_length.exchange(0));
  if (length == 0) return;
  for (int unit = 100; unit > 0; unit /= 10) line[length++] = static_cast<char>('0' + status / unit % 10);
  line[length++] = '\n';
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file >= 0) append(file, line.data(), length);
  append(STDERR_FILENO, told.data(), told.size());
}

void on_signal(int signal) {
  leave_note(128 + signal);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  raise(signal);  // which ends the process as it would have ended, as soon as this returns
}

void hear_exit(int status, void*) { leave_note(status); }

}  // namespace

CrashNote::CrashNote(const std::string& folder, std::string told_then) {
  path = note_path(folder);
  told = std::move(told_then) + "\n";
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before[i]);
  static const bool hears_exit = on_exit(hear_exit, nullptr) == 0;
  RUNNER_ASSERT(hears_exit, "a process may have 32 such functions at least");
}

CrashNote::~CrashNote() {
  end();
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

void CrashNote::begin(std::int64_t trial, std::int64_t claims) {
  end();
  line_length = std::snprintf(line.data(), line.size() - 4, "%lld %lld ", static_cast<long long>(trial),
                              static_cast<long long>(claims));
}

void CrashNote::end() { line_length = 0; }

std::optional<int> CrashNote::status_of(const std::string& folder, std::int64_t trial, std::int64_t claims) {
  const auto text = core::read_file(note_path(folder), kFileBytesMax);
  if (!text) return std::nullopt;  // no note
  std::istringstream lines(text.value());
  long long of = 0, life = 0;
  for (int status = 0; lines >> of >> life >> status;) {
    if (of == trial && life == claims) return status;
  }
  return std::nullopt;
}

}  // namespace runner::sweep
