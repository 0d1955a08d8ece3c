#pragma once

#include <string>
#include <vector>

#include "components/tokenizer/chat/chat_format.h"
#include "runner/core/result.h"

namespace components::data {

/// The names of a record's fields, where they are others than the usual ones; "": the usual one.
struct RecordColumns {
  std::string text, prompt, completion, messages;
};

/// A record of a JSONL file of texts. One of the three is given.
struct TextRecord {
  enum class Kind { kText, kCompletion, kMessages };
  Kind kind = Kind::kText;
  std::string prompt;  ///< of a completion
  std::string text;    ///< the whole text, or the completion
  std::vector<tokenizer::Message> messages;
};

/// Reads a line: {text}, {prompt, completion}, {instruction, input, output} with Alpaca's prompt, {messages: [{role,
/// content}]} or ShareGPT's {conversations: [{from, value}]}; of several the first in this order. Other fields are
/// skipped. Failure: no JSON object, none of these, or a field of another type, by name.
runner::core::Result<TextRecord> parse_text_record(const std::string& line, const RecordColumns& columns);

}  // namespace components::data
