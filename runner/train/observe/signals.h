#pragma once

#include <atomic>

namespace runner::train {

/// Each of core::end_signals() that is not ignored asks the loop to finish its step, save and exit with 75; SIGINT does
/// so even where it is ignored, and after another of them exits at once with 130. The destructor restores the previous
/// handlers; of several watches at a time, that of the first.
class SignalWatch {
 public:
  /// `other`: source of signals for this training only, in addition to the process's; may be null.
  explicit SignalWatch(const std::atomic<int>* other = nullptr);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Name of the signal received, or null.
  const char* received() const { return name_of(number()); }
  int number() const;  ///< its number; 0: none received
  static const char* name_of(int signal);

 private:
  const std::atomic<int>* other_;
};

}  // namespace runner::train
