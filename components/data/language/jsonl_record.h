#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "components/data/fields/field_counts.h"
#include "components/data/language/messages.h"
#include "components/tokenizer/chat/chat_format.h"
#include "runner/core/result.h"

namespace components::data {

/// The names of a record's fields, where they are others than the usual ones; "": the usual one.
struct RecordColumns {
  std::string text, prompt, completion, messages, chosen, rejected, label, system, tools, instruction, input, output;
  MessageNames of_messages = {};
  bool instructions_are_chat = false;  ///< an instruction is a user's message, as the set has a chat format of its own
  bool labelled = false;               ///< records are a prompt, a completion and a label, or pairs
};

/// A record of a JSONL file of texts.
struct TextRecord {
  /// kPair: two completions of a prompt, kMessagePair: two continuations of a conversation.
  enum class Kind { kText, kCompletion, kMessages, kPair, kMessagePair };
  Kind kind = Kind::kText;
  std::string prompt = {};                        ///< of a completion or a pair
  std::string text = {};                          ///< the whole text, the completion, or the chosen one
  std::string rejected = {};                      ///< of a pair
  std::vector<tokenizer::Message> messages = {};  ///< the conversation, or what both of a pair begin with
  std::vector<tokenizer::Message> chosen_messages = {}, rejected_messages = {};
  std::size_t completion_from = 0;       ///< of a conversation: the messages behind a prompt that are its completion
  bool desirable = true;                 ///< of a labelled record, its label
  runner::core::Node tools = {};         ///< of a conversation: a list, or null
  runner::core::Node variables = {};     ///< of a conversation, for its template: a mapping, or null
  std::vector<std::string> unread = {};  ///< fields with a meaning that this leaves out, unread_fields.h
  std::vector<std::string> read = {};    ///< fields that this is made of, as far as the record has them
  FieldUse fields = {};                  ///< all that the record has, with those of messages

  bool is_pair() const { return kind == Kind::kPair || kind == Kind::kMessagePair; }
};

/// Reads a line: {text}, {prompt, chosen, rejected} or {chosen, rejected} that begin alike, {prompt, completion},
/// {instruction, input, output}, or Dolly's {instruction, context, response}, with Alpaca's prompt or as a
/// conversation, which `system` and `history`, a list of [question, answer], may begin, also with two answers where
/// both are named; {messages: [{role, content}]}
/// or ShareGPT's {conversations: [{from, value}]}, with `system` and `tools` beside them; of several the first in this
/// order. Prompts, completions and both of a pair may be messages, too: read_messages(). A field that is null is not
/// there; those without a meaning are skipped. Of labelled records each is {prompt, completion, label}, or a pair.
/// Failure: no JSON object, none of these, or a field of another type, by name; what would be learnt as something else
/// than it is: an answer whose `label` is false, a call of a tool without content that the format does not write, a
/// pair whose question would be lost.
runner::core::Result<TextRecord> parse_text_record(const std::string& line, const RecordColumns& columns);

}  // namespace components::data
