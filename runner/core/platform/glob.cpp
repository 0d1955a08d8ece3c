#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "runner/core/platform/files.h"

namespace runner::core {
namespace {

constexpr int kBracesMax = 1000;  // alternatives of one pattern
constexpr int kDepthMax = 64;     // depth of **; ends circular links

bool is_pattern(std::string_view text) { return text.find_first_of("*?[{") != std::string_view::npos; }

// `{a,b}` becomes two patterns; braces may nest. A brace without its partner is taken as text.
std::vector<std::string> expand_braces(const std::string& pattern) {
  std::vector<std::string> open{pattern};
  std::vector<std::string> done;
  while (!open.empty() && done.size() + open.size() <= kBracesMax) {
    const std::string text = open.back();
    open.pop_back();
    const std::size_t begin = text.find('{');
    std::vector<std::size_t> cuts;
    int depth = 0;
    for (std::size_t i = begin; i < text.size(); ++i) {
      if (text[i] == '{' && depth++ == 0) cuts.push_back(i);
      if (text[i] == ',' && depth == 1) cuts.push_back(i);
      if (text[i] == '}' && --depth == 0) {
        cuts.push_back(i);
        break;
      }
    }
    if (begin == std::string::npos || depth != 0) {
      done.push_back(text);
      continue;
    }
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      open.push_back(text.substr(0, begin) + text.substr(cuts[i] + 1, cuts[i + 1] - cuts[i] - 1) +
                     text.substr(cuts.back() + 1));
    }
  }
  return done;
}

bool matches_class(std::string_view pattern, std::size_t& at, char c) {
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool found = false;
  for (bool first = true; i < pattern.size() && (pattern[i] != ']' || first); first = false) {
    const char low = pattern[i];
    char high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = pattern[i + 2];
      i += 2;
    }
    found = found || (low <= c && c <= high);
    ++i;
  }
  at = std::min(i + 1, pattern.size());
  return found != negated;
}

// One path component against one pattern component. Backtracks to the last star only, so it is linear in practice.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, mark = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
      continue;
    }
    std::size_t next = p + 1;
    bool fits = false;
    if (p < pattern.size()) {
      if (pattern[p] == '[' && pattern.find(']', p + 2) != std::string_view::npos) {
        next = p;
        fits = matches_class(pattern, next, name[n]);
      } else {
        fits = pattern[p] == '?' || pattern[p] == name[n];
      }
    }
    if (fits) {
      p = next;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

struct Listed {
  std::string name;
  bool folder = false;
  bool link = false;
};

std::vector<Listed> list(const std::string& folder) {
  std::vector<Listed> names;
  DIR* dir = ::opendir(folder.empty() ? "." : folder.c_str());
  if (!dir) return names;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info {};
    if (::stat((folder + name).c_str(), &info) != 0) continue;
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) continue;
    names.push_back({name, S_ISDIR(info.st_mode), entry->d_type == DT_LNK});
  }
  ::closedir(dir);
  return names;
}

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Hidden names match only a pattern that begins with a dot, as in a shell.
bool hidden_from(std::string_view pattern, std::string_view name) {
  return name[0] == '.' && (pattern.empty() || pattern[0] != '.');
}

using Visited = std::set<std::pair<std::string, std::size_t>>;  // folders, each with the part it was asked for

void walk(const std::string& folder, const std::vector<std::string>& parts, std::size_t at, int depth, Visited& visited,
          std::set<std::string>& found) {
  // Several `**` lead to one folder in very many ways.
  if (depth > kDepthMax || !visited.emplace(folder, at).second) return;
  const std::string& part = parts[at];
  const bool last = at + 1 == parts.size();
  if (part == "**") {
    if (last) {
      for (const Listed& entry : list(folder)) {
        if (entry.folder || hidden_from("", entry.name)) continue;
        found.insert(folder + entry.name);
      }
    } else {
      walk(folder, parts, at + 1, depth, visited, found);
    }
    for (const Listed& entry : list(folder)) {
      // Links to folders are not followed below **: they may lead back up.
      if (entry.folder && !entry.link && !hidden_from("", entry.name))
        walk(folder + entry.name + "/", parts, at, depth + 1, visited, found);
    }
    return;
  }
  if (!is_pattern(part)) {
    if (!last) return walk(folder + part + "/", parts, at + 1, depth + 1, visited, found);
    if (is_file(folder + part)) found.insert(folder + part);
    return;
  }
  for (const Listed& entry : list(folder)) {
    if (hidden_from(part, entry.name) || !matches(part, entry.name)) continue;
    if (last && !entry.folder) found.insert(folder + entry.name);
    if (!last && entry.folder) walk(folder + entry.name + "/", parts, at + 1, depth + 1, visited, found);
  }
}

}  // namespace

std::size_t literal_folder(const std::string& pattern) {
  std::size_t end = 0;
  for (std::size_t slash = pattern.find('/'); slash != std::string::npos; slash = pattern.find('/', slash + 1)) {
    const std::string folder = pattern.substr(0, slash + 1);
    if (folder.find_first_of("*?", end) != std::string::npos || !is_folder(folder)) break;
    end = slash + 1;
  }
  return end;
}

std::vector<std::string> glob(const std::string& pattern) {
  if (!is_pattern(pattern)) return {pattern};
  const std::size_t literal = literal_folder(pattern);
  std::set<std::string> found;
  for (const std::string& one : expand_braces(pattern.substr(literal))) {
    std::vector<std::string> parts;
    std::string folder = literal > 0 ? pattern.substr(0, literal) : one.starts_with('/') ? "/" : "";
    for (std::size_t at = 0; at < one.size();) {
      const std::size_t end = std::min(one.find('/', at), one.size());
      if (end > at) parts.push_back(one.substr(at, end - at));
      at = end + 1;
    }
    Visited visited;
    if (!parts.empty() && one.back() != '/') walk(folder, parts, 0, 0, visited, found);
  }
  return {found.begin(), found.end()};
}

}  // namespace runner::core
