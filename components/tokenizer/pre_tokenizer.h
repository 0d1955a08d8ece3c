#pragma once

#include <memory>
#include <string>
#include <vector>

#include "components/tokenizer/text/fields.h"
#include "components/tokenizer/text/pattern.h"
#include "components/tokenizer/text/piece.h"

namespace components::tokenizer {

/// Splits the text into words; no token goes across two of them.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;
};

/// What a split does with the parts that its pattern matches.
enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Splits all pieces that are no tokens. `invert`: takes for matches what lies between them.
void split(Pieces& pieces, const Pattern& pattern, Behavior behavior, bool invert = false);

struct PreTokenizers {
  std::unique_ptr<PreTokenizer> first;
  bool bytes = false;           ///< the last is `ByteLevel`: it leaves the bytes, for a model of bytes
  bool needs_tracking = false;  ///< one looks at where a piece comes from
};

/// Sequence, ByteLevel, Split, Digits, Metaspace, Whitespace, WhitespaceSplit, Punctuation, BertPreTokenizer; throws
/// RunError for others. `bytes`: whether the model can take bytes.
PreTokenizers make_pre_tokenizer(const Fields& fields, bool bytes);

}  // namespace components::tokenizer
