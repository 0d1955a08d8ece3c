#pragma once

#include <cstdint>
#include <span>

namespace components::generation {

/// What may not follow a text, however probable it is. The defaults leave out nothing.
struct LeftOut {
  std::int64_t no_repeat_ngram_size = 0;  ///< n tokens that are in the text already; 0: they may repeat
  std::int64_t min_new_tokens = 0;        ///< end tokens, while the text has fewer new tokens
};

/// A text, with its prompt: of a model with an encoder what its decoder has read.
struct TextSoFar {
  std::span<const std::int32_t> tokens;
  std::int64_t new_tokens = 0;  ///< the last ones, which are not of the prompt
};

/// Makes the logits [vocabulary] of these tokens -inf. Ids that no logit has are ignored.
///
/// Returns  false when nothing that can be chosen is left of them.
/// Cost     O(tokens of the text), nothing with the defaults.
/// Source   Transformers 5, NoRepeatNGramLogitsProcessor and MinNewTokensLengthLogitsProcessor
bool leave_out(std::span<float> logits, const TextSoFar& text, const LeftOut& which,
               std::span<const std::int32_t> end_ids);

}  // namespace components::generation
