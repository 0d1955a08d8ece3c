#pragma once

#include <memory>
#include <string>

#include "components/tokenizer/fields.h"
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

  void apply(Pieces& pieces, Piece& piece) const;
  std::string apply(const std::string& text) const;

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

}  // namespace components::tokenizer
