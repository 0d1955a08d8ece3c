#pragma once

#include <cstdint>
#include <string>

#include "runner/core/clock.h"

namespace runner::train {

/// Shows progress: one bar with the remaining time on a terminal, plain lines elsewhere (at most one every few seconds,
/// to keep log files readable). Everything goes to standard error; nothing when quiet.
class Console {
 public:
  struct Options {
    bool bar = false;
    bool quiet = false;
    std::int64_t total_steps = 0;  ///< 0: unknown
  };
  Console(Options options, const core::Clock& clock);
  ~Console();

  /// Call once per step; draws at most ten times a second (bar) or every five seconds (lines).
  bool wants_update() const;
  void update(std::int64_t step, double share_done, double eta_seconds, const std::string& figures);
  /// Prints a permanent line above the bar.
  void line(const std::string& text);
  /// Removes the bar.
  void clear();

 private:
  Options options_;
  const core::Clock& clock_;
  std::int64_t next_ns_ = 0;
  bool drawn_ = false;
};

}  // namespace runner::train
