#pragma once

namespace runner::train {

/// SIGINT, SIGTERM and SIGUSR1 ask the loop to finish its step, save and leave with 75; a SIGINT after one of them
/// leaves at once. Restores what was there before when it goes.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Name of the signal that came, or null.
  const char* received() const;
};

}  // namespace runner::train
