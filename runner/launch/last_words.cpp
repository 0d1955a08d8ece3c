#include "runner/launch/last_words.h"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace runner::launch {
namespace {

constexpr std::size_t kLastLinesShown = 5;
constexpr std::string_view kError = "error: ";

}  // namespace

std::string last_words(const std::deque<std::string>& lines) {
  std::size_t begin = lines.size();
  for (std::size_t i = lines.size(); i > 0 && begin == lines.size(); --i) {
    if (lines[i - 1].starts_with(kError)) begin = i - 1;
  }
  std::string text;
  if (begin < lines.size()) {
    text = lines[begin].substr(kError.size());
  } else if (!lines.empty()) {
    begin = lines.size() - std::min(lines.size(), kLastLinesShown);
    text = "it said last:\n  " + lines[begin];
  }
  for (std::size_t i = begin + 1; i < lines.size(); ++i) text += "\n" + lines[i];
  return text;
}

std::string last_words(const std::string& printed) {
  std::deque<std::string> lines;
  std::istringstream text(printed);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return last_words(lines);
}

}  // namespace runner::launch
