#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runner/core/diagnostics.h"
#include "runner/core/location.h"
#include "runner/recipe/read.h"

namespace runner::recipe {

/// Converts byte offsets of a text into locations. Fast in ascending order: continues from the last one.
class SourceText {
 public:
  explicit SourceText(std::shared_ptr<const core::Source> source);

  /// The location of the bytes [begin, end), underlined up to the end of their first line.
  core::Location location(std::size_t begin, std::size_t end);

  /// The text without a byte-order mark; offsets still count from the start of the file.
  std::string_view text() const { return source_->text; }
  std::size_t begin() const { return begin_; }
  /// Where the text of a file begins: behind a byte-order mark.
  static std::size_t begin_of(std::string_view file);

 private:
  std::shared_ptr<const core::Source> source_;
  std::size_t begin_ = 0;
  std::size_t offset_ = 0;
  int line_ = 1;
  int column_ = 1;
};

/// Whether the bytes are text that a parser may see: not too large, UTF-8, no control bytes. Tells what is wrong and
/// where.
bool check_text(SourceText& text, const Limits& limits, core::Diagnostics& diagnostics);

/// The name of the character at `at` when it looks like a space, or like nothing, and is none to YAML: `a no-break
/// space (U+00A0)`. "" for any other.
std::string strange_space(std::string_view text, std::size_t at);
/// Offset of the first of them in the indentation of `line`, or behind a `:` or `-` on it; npos when there is none.
std::size_t find_strange_space(std::string_view line);
inline constexpr std::string_view kStrangeSpaceHint = "write a space in its place; in text, put the text in quotes";

}  // namespace runner::recipe
