#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "runner/terminal/live_lines.h"

namespace runner::cli {

/// A line on standard error that shows how far work is, where that is a terminal; erased at the end.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// At most ten times a second; `text` is asked for when it is drawn.
  void draw(const std::function<std::string()>& text);
  void clear();

 private:
  bool shown_ = false;
  terminal::LiveLines lines_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace runner::cli
