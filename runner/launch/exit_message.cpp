#include "runner/launch/exit_message.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

namespace runner::launch {
namespace {

constexpr std::size_t kLastLinesShown = 5;
constexpr std::string_view kError = "error: ", kSaidLast = "last output:";

/// The message in an error line, with a location (`recipe.yaml:3:8: error: ...`) or without.
std::optional<std::string> error_in(const std::string& line) {
  if (line.starts_with(kError)) return line.substr(kError.size());
  const std::string at_place = ": " + std::string(kError);
  const std::size_t found = line.find(at_place);
  if (found == std::string::npos || line.find(' ') < found) return std::nullopt;
  return line.substr(found + at_place.size());
}

}  // namespace

std::string exit_message(const std::deque<std::string>& lines) {
  std::size_t begin = lines.size();
  for (std::size_t i = lines.size(); i > 0 && begin == lines.size(); --i) {
    if (error_in(lines[i - 1])) begin = i - 1;
  }
  std::string text;
  if (begin < lines.size()) {
    text = *error_in(lines[begin]);
  } else if (!lines.empty()) {
    begin = lines.size() - std::min(lines.size(), kLastLinesShown);
    text = kSaidLast;
    for (; begin < lines.size(); ++begin) text += "\n  " + lines[begin];
  }
  for (std::size_t i = begin + 1; i < lines.size(); ++i) text += "\n" + lines[i];
  return text;
}

std::string exit_message(const std::string& printed) {
  std::deque<std::string> lines;
  std::istringstream text(printed);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return exit_message(lines);
}

std::string in_one_line(const std::string& words) {
  const std::string first = words.substr(0, words.find('\n'));
  if (!words.starts_with(kSaidLast)) return first;
  const std::size_t end = words.find_last_not_of('\n');
  const std::size_t begin = words.find_first_not_of(' ', words.find_last_of('\n', end) + 1);
  return std::string(kSaidLast) + " " + words.substr(begin, end + 1 - begin);
}

}  // namespace runner::launch
