#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "components/tokenizer/text/fields.h"
#include "components/tokenizer/text/piece.h"

namespace components::tokenizer {

/// Changes the text before it is split.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(Pieces& pieces, Piece& piece) const = 0;
};

/// Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Nmt, Lowercase, Strip, StripAccents, Precompiled, BertNormalizer,
/// ByteLevel; throws RunError for others.
std::unique_ptr<Normalizer> make_normalizer(const Fields& fields);

/// The character of each byte in place of the bytes (byte_chars.h).
void write_bytes_as_chars(Pieces& pieces, Piece& piece);

}  // namespace components::tokenizer
