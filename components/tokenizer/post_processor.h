#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/fields.h"
#include "components/tokenizer/tokenizer.h"

namespace components::tokenizer {

/// A text that was encoded, before what a model expects around it is added.
struct Encoded {
  Encoding encoding;
  bool with_offsets = false;
  bool trim_offsets = false;  ///< where the file asks for it
  /// The text of a token at a place of the encoding: of one of the vocabulary its own, of an added one what it covers.
  std::function<std::string_view(std::size_t)> text_of;
};

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  virtual void apply(Encoded& encoded, bool add_special_tokens) const = 0;
};

/// Sequence, ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing; throws RunError for others.
std::unique_ptr<PostProcessor> make_post_processor(const Fields& fields);

/// Puts ids before and behind.
std::unique_ptr<PostProcessor> make_frame(std::vector<std::int32_t> before, std::vector<std::int32_t> behind);

}  // namespace components::tokenizer
