#include "runner/registry/pattern.h"

#include <regex.h>

#include <cctype>
#include <map>
#include <mutex>
#include <string_view>

#include "runner/core/error.h"

namespace runner::registry {
namespace {

class Compiled {
 public:
  explicit Compiled(const std::string& pattern)
      : ok_(regcomp(&expression_, pattern.c_str(), REG_EXTENDED | REG_NOSUB) == 0) {}
  ~Compiled() {
    if (ok_) regfree(&expression_);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  bool ok() const { return ok_; }
  bool found_in(const std::string& text) const { return regexec(&expression_, text.c_str(), 0, nullptr, 0) == 0; }

 private:
  regex_t expression_{};
  bool ok_;
};

/// `\d` is a class for the one and the letter d for the other.
bool reads_the_same(std::string_view pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (std::isalnum(static_cast<unsigned char>(pattern[i + 1])) != 0) return false;
      ++i;  // `\\(?` escapes the backslash, not what follows
    } else if ((pattern[i] == '(' || pattern[i] == '*' || pattern[i] == '+' || pattern[i] == '?') &&
               pattern[i + 1] == '?') {
      return false;
    }
  }
  return pattern.find('\0') == std::string_view::npos;
}

}  // namespace

bool is_pattern(const std::string& pattern) { return reads_the_same(pattern) && Compiled(pattern).ok(); }

namespace {

/// Once a pattern, of which there are as many as the schemas have.
const Compiled& compiled_once(const std::string& pattern) {
  static std::mutex mutex;
  static std::map<std::string, Compiled, std::less<>> all;
  const std::lock_guard lock(mutex);
  return all.try_emplace(pattern, pattern).first->second;
}

}  // namespace

bool matches_pattern(const std::string& text, const std::string& pattern) {
  const Compiled& compiled = compiled_once(pattern);
  RUNNER_ASSERT(compiled.ok(), "parse_fragment has checked the pattern");
  return text.find('\0') == std::string::npos && compiled.found_in(text);
}

}  // namespace runner::registry
