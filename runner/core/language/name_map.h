#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/result.h"

namespace runner::core {

/// Whether `name` is of the form `pattern`, in which `*` matches any text, also for none.
bool matches_wildcard(std::string_view pattern, std::string_view name);

/// Rules that map one program's tensor names to another's, applied in order, each to the previous result: every match
/// of a POSIX extended regular expression becomes its replacement, in which `\1` to `\9` are the groups of the match
/// and `\\` is a backslash.
class NameMap {
 public:
  using Rules = std::vector<std::pair<std::string, std::string>>;

  /// The Failure names the wrong rule.
  static Result<NameMap> make(const Rules& rules);
  /// Why this rule is invalid, with a hint.
  static Result<void> check(const std::string& pattern, const std::string& replacement);

  std::string operator()(const std::string& name) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule;
  std::vector<std::shared_ptr<const Rule>> rules_;
};

}  // namespace runner::core
