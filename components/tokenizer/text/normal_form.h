#pragma once

#include <string_view>
#include <vector>

#include "components/tokenizer/text/piece.h"

namespace components::tokenizer {

enum class NormalForm { kC, kD, kKC, kKD };

/// Whether the text surely is in that form already; a cheap answer, false when in doubt.
bool surely_normal(std::string_view text, NormalForm form);

/// Its characters in that form (UAX 15), each with how many of `text` it replaces.
std::vector<NewChar> normalized(std::string_view text, NormalForm form);

}  // namespace components::tokenizer
