#pragma once

#include <memory>
#include <string>
#include <vector>

#include "components/tokenizer/text/fields.h"
#include "components/tokenizer/text/growth.h"

namespace components::tokenizer {

/// Turns the texts of tokens into those that are joined to the decoded one.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// RunError when that makes too much of them.
  virtual void apply(std::vector<std::string>& tokens, Growth& growth) const = 0;
};

/// Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, BPEDecoder, WordPiece; throws RunError for
/// others.
std::unique_ptr<Decoder> make_decoder(const Fields& fields);

/// What continues a word begins with `prefix`. `cleanup`: without the spaces before punctuation and in contractions.
std::unique_ptr<Decoder> make_wordpiece_decoder(std::string prefix, bool cleanup);

/// The byte of `<0xNN>`; -1 for other texts.
int byte_of_name(std::string_view token);

}  // namespace components::tokenizer
