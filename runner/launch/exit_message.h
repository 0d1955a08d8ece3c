#pragma once

#include <deque>
#include <string>

namespace runner::launch {

/// What a process has said of its end: the last error among the lines that it printed, without the word and
/// its place, with what followed it; else its last lines; "" when there are none.
std::string exit_message(const std::deque<std::string>& lines);
std::string exit_message(const std::string& printed);

/// What they come to: the error, or of lines that tell none the last.
std::string in_one_line(const std::string& words);

}  // namespace runner::launch
