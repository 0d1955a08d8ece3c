#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/tokenizer/text/fields.h"
#include "components/tokenizer/text/pattern.h"
#include "components/tokenizer/text/piece.h"

namespace components::tokenizer {

/// `pattern`: {"String": text} or {"Regex": expression}. Throws RunError.
std::unique_ptr<Pattern> read_pattern(const Fields& fields);

/// What the normalizer and the decoder `Replace` do: `content` in place of each match of `pattern`.
class Replacement {
 public:
  explicit Replacement(const Fields& fields) : Replacement(read_pattern(fields), fields.text("content")) {}
  Replacement(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  /// Both throw RunError when that makes too much of the text.
  void apply(Pieces& pieces, Piece& piece) const;
  std::string apply(const std::string& text, Growth& growth) const;

 private:
  std::size_t size_after(std::size_t size, const std::vector<Range>& matches) const;

  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

}  // namespace components::tokenizer
