#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace runner::core {

/// Logs another program's output as warnings, up to a limit, so that endless output does not fill the log.
class ChildLog {
 public:
  static constexpr std::size_t kLineBytesMax = 2000;  ///< for whoever reads the lines

  /// `who` begins each line.
  ChildLog(std::string who, std::size_t lines_max) : who_(std::move(who)), lines_max_(lines_max) {}

  void say(const std::string& line);

 private:
  std::string who_;
  std::size_t lines_max_, lines_ = 0;
};

}  // namespace runner::core
