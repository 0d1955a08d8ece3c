#pragma once

#include <atomic>

namespace runner::train {

/// SIGINT, SIGTERM, SIGUSR1 and SIGHUP (unless it is ignored, as under `nohup`) ask the loop to finish its step, save
/// and leave with 75; a SIGINT after one of them leaves at once with 130. Restores what was there before when it goes.
class SignalWatch {
 public:
  /// `other`: where a signal for this training alone comes in, beside those of the process; may be null.
  explicit SignalWatch(const std::atomic<int>* other = nullptr);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Name of the signal that came, or null.
  const char* received() const { return name_of(number()); }
  int number() const;  ///< of it; 0: none came
  static const char* name_of(int signal);

 private:
  const std::atomic<int>* other_;
};

}  // namespace runner::train
