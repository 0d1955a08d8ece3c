#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace re2 {
class RE2;
}

namespace runner::core {

/// A regular expression over UTF-8, matched by RE2: neither the expression nor the text can make it run out of stack,
/// memory or time.
class Pattern {
 public:
  /// kPosix: extended, without `\d` and lazy repetitions. kPython: as Python's `re`, without what looks ahead or back.
  enum class Syntax { kPosix, kPython };

  /// The Failure names the error and the supported form.
  static Result<Pattern> make(const std::string& text, Syntax syntax = Syntax::kPosix);

  /// Whether some part of `text` matches.
  bool is_in(std::string_view text) const;
  /// Whether all of `text` matches.
  bool is_whole(std::string_view text) const;
  /// The leftmost, longest match that begins at byte `from` or later: the whole of it and then its groups, as views
  /// into `text`, with a null data() where a group takes no part. Empty when there is none.
  std::vector<std::string_view> find(std::string_view text, std::size_t from) const;
  int groups() const;

 private:
  explicit Pattern(std::shared_ptr<const re2::RE2> expression) : expression_(std::move(expression)) {}

  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace runner::core
