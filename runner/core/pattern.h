#pragma once

#include <regex.h>

#include <memory>
#include <string>

#include "runner/core/result.h"

namespace runner::core {

/// A POSIX extended regular expression.
class Pattern {
 public:
  /// Failure says what is wrong with it, and how that is written here: `\d` and lazy repetitions are of other dialects.
  static Result<Pattern> make(const std::string& text);

  /// Whether some part of `text` matches.
  bool is_in(const std::string& text) const;
  const regex_t& expression() const { return *expression_; }

 private:
  explicit Pattern(std::shared_ptr<const regex_t> expression) : expression_(std::move(expression)) {}

  std::shared_ptr<const regex_t> expression_;
};

}  // namespace runner::core
