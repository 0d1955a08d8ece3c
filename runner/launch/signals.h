#pragma once

#include <signal.h>

#include <optional>

namespace runner::launch {

/// Blocks core::end_signals(), but for those that are ignored, and makes them readable from a descriptor; the
/// destructor restores the signal mask.
class Signals {
 public:
  Signals();  ///< RunError when the system has no descriptor left
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }
  /// The next signal from a user or scheduler; nothing when there is none. Skips SIGCHLD.
  std::optional<int> next() const;

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

}  // namespace runner::launch
