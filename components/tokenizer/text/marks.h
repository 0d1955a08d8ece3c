#pragma once

// Marks and control characters as the `tokenizers` library knows them: it has them from tables of Unicode 8 and 9, and
// later ones are other characters to it.

namespace components::tokenizer {

/// General category Mn of Unicode 8: what BERT strips of accents.
bool is_accent(char32_t c);

/// General category M of Unicode 9: what the normalizer StripAccents leaves out.
bool is_mark(char32_t c);

/// General categories Cc, Cf and Co of Unicode 8.
bool is_other(char32_t c);

}  // namespace components::tokenizer
