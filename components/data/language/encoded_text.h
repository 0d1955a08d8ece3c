#pragma once

#include <string>

#include "components/data/record/sequence.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/result.h"

namespace components::data {

/// A text of its own, with the end token behind it. Failure: it is empty, or the tokenizer's.
runner::core::Result<Sequence> encoded_text(const tokenizer::Tokenizer& tokenizer, const std::string& text);

/// Puts the end token behind ids and labels, which is to be learnt, too; unless it is there, or the recipe adds no
/// special tokens. `always`: an end token that is there ends something else.
void add_end(const tokenizer::Tokenizer& tokenizer, Sequence& sequence, bool always = false);

}  // namespace components::data
