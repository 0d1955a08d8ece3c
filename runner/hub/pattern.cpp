#include "runner/hub/pattern.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace runner::hub {
namespace {

using Parts = std::vector<std::string_view>;

Parts parts_of(std::string_view path) {
  Parts parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Where the bracket that opens at `at` ends, or npos: then it is a character like others.
std::size_t end_of_set(std::string_view pattern, std::size_t at) {
  std::size_t first = at + 1;
  if (first < pattern.size() && pattern[first] == '!') ++first;
  return first < pattern.size() ? pattern.find(']', first + 1) : std::string_view::npos;
}

bool is_in_set(std::string_view set, char c) {
  const bool negated = set.starts_with('!');
  if (negated) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  return found != negated;
}

/// Whether what stands at `at` of the pattern, which is no `*`, is `c`; moves behind it.
bool takes(std::string_view pattern, std::size_t& at, char c) {
  const std::size_t end = pattern[at] == '[' ? end_of_set(pattern, at) : std::string_view::npos;
  if (end != std::string_view::npos) {
    const bool is_in = is_in_set(pattern.substr(at + 1, end - at - 1), c);
    at = end + 1;
    return is_in;
  }
  const char wanted = pattern[at++];
  return wanted == '?' || wanted == c;
}

/// Of one part: what follows the last `*` that was met is tried one character later each time.
bool part_matches(std::string_view pattern, std::string_view text) {
  std::size_t at = 0, i = 0, star = std::string_view::npos, tried = 0;
  while (i < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      tried = i;
      continue;
    }
    if (at < pattern.size() && takes(pattern, at, text[i])) {
      ++i;
      continue;
    }
    if (star == std::string_view::npos) return false;
    at = star + 1;
    i = ++tried;
  }
  return pattern.substr(at).find_first_not_of('*') == std::string_view::npos;
}

/// The same of parts, with `**` for `*`. A last `**` means files, so at least one part.
bool parts_match(const Parts& pattern, const Parts& file) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t at = 0, i = 0, star = kNone, tried = 0;
  while (i < file.size()) {
    if (at < pattern.size() && pattern[at] == "**") {
      star = at++;
      tried = i;
      if (at == pattern.size()) return true;
      continue;
    }
    if (at < pattern.size() && part_matches(pattern[at], file[i])) {
      ++at;
      ++i;
      continue;
    }
    if (star == kNone) return false;
    at = star + 1;
    i = ++tried;
  }
  return at == pattern.size();
}

std::ptrdiff_t hidden(const Parts& parts) {
  return std::count_if(parts.begin(), parts.end(), [](std::string_view part) {
    return part.starts_with('.') && part.find_first_not_of('.') != std::string_view::npos;
  });
}

std::ptrdiff_t special_folders(const Parts& parts) {
  return std::count_if(parts.begin(), parts.end() - 1, [](std::string_view part) { return part.starts_with("__"); });
}

}  // namespace

bool matches(std::string_view pattern, std::string_view file) {
  const Parts wanted = parts_of(pattern), parts = parts_of(file);
  return parts_match(wanted, parts) && hidden(wanted) == hidden(parts) &&
         special_folders(wanted) == special_folders(parts);
}

bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

}  // namespace runner::hub
