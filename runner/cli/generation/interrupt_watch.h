#pragma once

#include <signal.h>

#include <csignal>

namespace runner::cli {

/// Exit status of a work that Ctrl-C ended.
inline constexpr int kInterrupted = 128 + SIGINT;

/// While it lives, Ctrl-C ends the work after the next token. One at a time.
class InterruptWatch {
 public:
  /// `patience`: this many are counted; one more ends the program.
  explicit InterruptWatch(int patience = 1);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  static bool received();
  /// Begins to count from zero.
  static void forget();

 private:
  struct sigaction before_ = {};
};

}  // namespace runner::cli
