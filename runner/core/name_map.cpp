#include "runner/core/name_map.h"

#include <regex.h>

#include <array>
#include <cctype>
#include <cstddef>

namespace runner::core {
namespace {

constexpr std::size_t kGroups = 10;  // the whole match, and \1 to \9

/// `\d` would be the letter d here, and a digit for whoever wrote it.
Result<void> refuse_other_dialects(const std::string& pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (std::isalnum(static_cast<unsigned char>(pattern[i + 1])) != 0) {
        return Failure{"\"" + pattern + "\" uses \\" + pattern[i + 1] + ", which POSIX extended expressions have not",
                       "write [0-9] for \\d, [A-Za-z0-9_] for \\w"};
      }
      ++i;
    } else if (pattern[i + 1] == '?' && std::string_view("(*+?").find(pattern[i]) != std::string_view::npos) {
      return Failure{"\"" + pattern + "\" uses " + pattern[i] + "?, which POSIX extended expressions have not",
                     "a plain group ( ) and a plain repetition do"};
    }
  }
  if (pattern.empty() || pattern.find('\0') != std::string::npos) {
    return Failure{"an empty pattern matches everywhere", "write ^ for the beginning of a name"};
  }
  return {};
}

}  // namespace

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
  explicit Rule(std::string text) : replacement(std::move(text)) {}
  ~Rule() {
    if (compiled) regfree(&expression);
  }
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;

  std::string compile(const std::string& pattern) {
    const int status = regcomp(&expression, pattern.c_str(), REG_EXTENDED);
    compiled = status == 0;
    if (compiled) return "";
    std::array<char, 256> words{};
    regerror(status, &expression, words.data(), words.size());
    std::string text = words.data();
    if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    return text;
  }

  /// The group that a replacement asks for at `i`, or -1.
  int group_at(std::size_t i) const {
    if (replacement[i] != '\\' || i + 1 >= replacement.size()) return -1;
    const char next = replacement[i + 1];
    return next >= '1' && next <= '9' ? next - '0' : -1;
  }

  void append_replacement(const char* text, const std::array<regmatch_t, kGroups>& match, std::string& out) const {
    for (std::size_t i = 0; i < replacement.size(); ++i) {
      if (const int group = group_at(i); group > 0) {
        const regmatch_t& at = match[static_cast<std::size_t>(group)];
        if (at.rm_so >= 0) out.append(text + at.rm_so, text + at.rm_eo);
        ++i;
      } else {
        if (replacement[i] == '\\') ++i;  // check() lets only `\\` through
        out += replacement[i];
      }
    }
  }

  std::string apply(const std::string& name) const {
    std::string out;
    const char* rest = name.c_str();
    std::array<regmatch_t, kGroups> match{};
    for (int flags = 0; regexec(&expression, rest, kGroups, match.data(), flags) == 0; flags = REG_NOTBOL) {
      out.append(rest, rest + match[0].rm_so);
      append_replacement(rest, match, out);
      const bool empty = match[0].rm_eo == match[0].rm_so;
      rest += match[0].rm_eo;
      if (*rest == '\0') return out;
      if (empty) out += *rest++;
    }
    return out + rest;
  }

  regex_t expression{};
  bool compiled = false;
  std::string replacement;
};

Result<void> NameMap::check(const std::string& pattern, const std::string& replacement) {
  if (const auto dialect = refuse_other_dialects(pattern); !dialect) return dialect;
  Rule rule(replacement);
  if (const std::string why = rule.compile(pattern); !why.empty()) {
    return Failure{"\"" + pattern + "\" is no regular expression: " + why, "a dot that means a dot is written \\."};
  }
  for (std::size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != '\\') continue;
    const int group = rule.group_at(i);
    if (group > 0 && static_cast<std::size_t>(group) > rule.expression.re_nsub) {
      return Failure{"\"" + replacement + "\" asks for group \\" + std::to_string(group) + ", but \"" + pattern +
                         "\" has " + std::to_string(rule.expression.re_nsub),
                     "put ( ) around the part of the pattern that is meant"};
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
    const auto rule = std::make_shared<Rule>(replacement);
    rule->compile(pattern);
    map.rules_.push_back(rule);
  }
  return map;
}

std::string NameMap::operator()(const std::string& name) const {
  std::string mapped = name;
  for (const auto& rule : rules_) mapped = rule->apply(mapped);
  return mapped;
}

}  // namespace runner::core
