#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "components/data/record/sequence.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/result.h"

namespace components::data {

/// A text of its own, with the end token behind it. Failure: it is empty, or the tokenizer's.
runner::core::Result<Sequence> encoded_text(const tokenizer::Tokenizer& tokenizer, const std::string& text);

/// A text, or a pair where `pair` is not null, with the tokens that the tokenizer puts around it, whatever is cut.
/// `max_length`: ids that it is cut to; nothing: it is not cut. `offsets`: gets the places of the tokens; null:
/// nothing. Failure: it is empty, or the tokenizer's.
runner::core::Result<Sequence> encoded_whole(const tokenizer::Tokenizer& tokenizer, const std::string& text,
                                             const std::string* pair, std::optional<std::int64_t> max_length,
                                             std::vector<tokenizer::Offsets>* offsets = nullptr);

/// Puts the end token behind ids and labels, which is to be learnt, too; unless it is there, or the recipe adds no
/// special tokens. `always`: an end token that is there ends something else.
void add_end(const tokenizer::Tokenizer& tokenizer, Sequence& sequence, bool always = false);

}  // namespace components::data
