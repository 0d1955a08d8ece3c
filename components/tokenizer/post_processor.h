#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "components/tokenizer/text/fields.h"
#include "components/tokenizer/text/growth.h"
#include "components/tokenizer/text/vocabulary.h"
#include "components/tokenizer/tokenizer.h"

namespace components::tokenizer {

/// A text that was encoded, before what a model expects around it is added.
struct Encoded {
  Encoding encoding;
  bool with_offsets = false;
  bool trim_offsets = false;  ///< where the file asks for it
  bool only_missing = false;  ///< adds no special tokens that the text begins or ends with
  const Vocabulary* vocabulary = nullptr;
  std::vector<std::pair<std::size_t, std::string>> added_texts;  ///< what added tokens cover, by their places

  /// The text of a token at a place of the encoding: of one of the vocabulary its own, of an added one what it covers.
  std::string_view text_of(std::size_t place) const;
  /// Leaves `count` tokens, without those of `side`.
  void cut(std::size_t count, Side side);
  void append(const Encoded& other);
};

struct EncodedPair {
  Encoded first, second;
  bool joined = false;  ///< `first` is all of it
};

/// Leaves `count` tokens, without those of `side`.
void cut(Encoding& encoding, std::size_t count, Side side);
/// Tokens that a text may keep when `added` come to it. RunError when it may not even have those.
std::size_t room_for_text(const Truncation& truncation, std::size_t added);
/// Cuts a pair to which `added` tokens come. RunError when that cannot be.
void shorten(EncodedPair& pair, const Truncation& truncation, std::size_t added);

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  /// RunError when that makes too many tokens of a text.
  virtual void apply(Encoded& encoded, bool add_special_tokens, Growth& growth) const = 0;
  /// The same of a pair.
  virtual void apply(EncodedPair& pair, bool add_special_tokens, Growth& growth) const = 0;
  /// How many special tokens it adds to a text, and to a pair.
  virtual std::size_t added_to_text() const = 0;
  virtual std::size_t added_to_pair() const = 0;
};

/// Sequence, ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing; throws RunError for others.
std::unique_ptr<PostProcessor> make_post_processor(const Fields& fields);

/// How many of the last ids of `before` the text begins with.
std::size_t written_before(std::span<const std::int32_t> before, std::span<const std::int32_t> text);
/// How many of the first ids of `behind` the text ends with.
std::size_t written_behind(std::span<const std::int32_t> behind, std::span<const std::int32_t> text);

/// BERT's: `first` before a text, `last` behind it.
std::unique_ptr<PostProcessor> make_bert_frame(std::int32_t first, std::int32_t last);

}  // namespace components::tokenizer
