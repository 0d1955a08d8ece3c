#include "runner/core/language/name_map.h"

#include <algorithm>
#include <cstddef>

#include "runner/core/language/pattern.h"
#include "runner/core/text/utf8.h"

namespace runner::core {

bool matches_wildcard(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, after_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

struct NameMap::Rule {
  Rule(Pattern matched, std::string text) : pattern(std::move(matched)), replacement(std::move(text)) {}

  /// The group that a replacement refers to at `i`, or -1.
  int group_at(std::size_t i) const {
    if (replacement[i] != '\\' || i + 1 >= replacement.size()) return -1;
    const char next = replacement[i + 1];
    return next >= '1' && next <= '9' ? next - '0' : -1;
  }

  void append_replacement(const std::vector<std::string_view>& match, std::string& out) const {
    for (std::size_t i = 0; i < replacement.size(); ++i) {
      if (const int group = group_at(i); group > 0) {
        out += match[static_cast<std::size_t>(group)];
        ++i;
      } else {
        if (replacement[i] == '\\') ++i;  // check() lets only `\\` through
        out += replacement[i];
      }
    }
  }

  std::string apply(const std::string& name) const {
    std::string out;
    for (std::size_t at = 0;;) {
      const auto match = pattern.find(name, at);
      if (match.empty()) return out.append(name, at);
      const auto begin = static_cast<std::size_t>(match[0].data() - name.data());
      out.append(name, at, begin - at);
      append_replacement(match, out);
      at = begin + match[0].size();
      if (at == name.size()) return out;
      if (!match[0].empty()) continue;
      const std::size_t length = std::max<std::size_t>(utf8_length(name, at), 1);
      out.append(name, at, length);
      at += length;
    }
  }

  Pattern pattern;
  std::string replacement;
};

Result<void> NameMap::check(const std::string& pattern, const std::string& replacement) {
  const auto compiled = Pattern::make(pattern);
  if (!compiled) return compiled.failure();
  const Rule rule(compiled.value(), replacement);
  for (std::size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != '\\') continue;
    const int group = rule.group_at(i);
    if (group > rule.pattern.groups()) {
      return Failure{"\"" + replacement + "\" refers to group \\" + std::to_string(group) + ", but \"" + pattern +
                         "\" has " + std::to_string(rule.pattern.groups()),
                     "put ( ) around the intended part of the pattern"};
    }
    if (group < 0 && (i + 1 >= replacement.size() || replacement[i + 1] != '\\')) {
      return Failure{"\"" + replacement + "\" has a backslash that is neither \\1 to \\9 nor \\\\",
                     "a dot in a replacement is just a dot"};
    }
    ++i;
  }
  return {};
}

Result<NameMap> NameMap::make(const Rules& rules) {
  NameMap map;
  for (const auto& [pattern, replacement] : rules) {
    if (const auto fits = check(pattern, replacement); !fits) return fits.failure();
    map.rules_.push_back(std::make_shared<const Rule>(Pattern::make(pattern).value(), replacement));
  }
  return map;
}

std::string NameMap::operator()(const std::string& name) const {
  std::string mapped = name;
  for (const auto& rule : rules_) mapped = rule->apply(mapped);
  return mapped;
}

}  // namespace runner::core
