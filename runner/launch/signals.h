#pragma once

#include <signal.h>

#include <optional>

namespace runner::launch {

/// Our signals, as something to be polled while this lives; what they did before is so again when it goes.
class Signals {
 public:
  Signals();  ///< RunError when the system has no descriptor left
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }
  /// The next one that a person or a scheduler sent; nothing when there is none. Children that ended are passed over.
  std::optional<int> next() const;

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

}  // namespace runner::launch
