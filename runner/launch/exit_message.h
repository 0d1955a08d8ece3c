#pragma once

#include <deque>
#include <string>

namespace runner::launch {

/// Why a process ended, by its output: its last error without `error:` and location, and the lines that follow;
/// otherwise its last lines; "" for no output.
std::string exit_message(const std::deque<std::string>& lines);
std::string exit_message(const std::string& printed);

/// The first line of that error; without an error, the last line.
std::string in_one_line(const std::string& words);

}  // namespace runner::launch
