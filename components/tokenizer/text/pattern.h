#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace components::tokenizer {

/// Bytes [begin, end) of a text.
struct Range {
  std::size_t begin = 0, end = 0;
};

/// Finds what a pattern matches.
class Pattern {
 public:
  virtual ~Pattern() = default;
  /// Appends all matches from left to right. The text is valid UTF-8. Throws RunError when a match takes too long.
  virtual void find(std::string_view text, std::vector<Range>& matches) const = 0;
};

/// A regular expression as Oniguruma reads it, which the `tokenizers` library uses: `^` and `$` at each line, classes
/// of Unicode. Those of GPT-2, Llama 3 and Qwen are matched by code of their own, others by PCRE2. `place`: file and
/// field for messages. Throws RunError when it is wrong.
std::unique_ptr<Pattern> make_pattern(const std::string& regex, const std::string& place);

/// The same by PCRE2, whatever the expression is.
std::unique_ptr<Pattern> make_general_pattern(const std::string& regex, const std::string& place);

/// A text as it stands.
std::unique_ptr<Pattern> make_literal(std::string text);

}  // namespace components::tokenizer
