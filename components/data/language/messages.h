#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "components/data/fields/field_counts.h"
#include "components/tokenizer/chat/chat_format.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::data {

/// How the messages of a set are called.
struct MessageNames {
  std::string role, content;                 ///< fields; "": `role` or `from`, `content` or `value`
  std::map<std::string, std::string> roles;  ///< a set's own word, and the role that it means
  /// Whether the chat format writes a field of a message, such as `tool_calls`; empty: none.
  std::function<bool(std::string_view)> reads;
};

struct MessagesRead {
  std::vector<tokenizer::Message> messages;
  std::vector<std::string> unread;  ///< fields with a meaning that the chat format leaves out: `messages[].name`
  FieldUse fields;                  ///< all that the messages have
};

/// Reads a list of messages, or a single one: OpenAI's, whose content may be a list of parts, or ShareGPT's. What is
/// null is not there. `key`: the list's, for messages. Failure, with the place in the list: another type, an image or
/// another part that is no text, a weight other than 0 and 1, and a call of a tool that would be an empty answer.
runner::core::Result<MessagesRead> read_messages(const runner::core::Node& list, const std::string& key,
                                                 const MessageNames& names);

/// The tools of a record, a list or the JSON text of one; null for none. Failure: something else.
runner::core::Result<runner::core::Node> read_tools(const runner::core::Node& object, const std::string& key);

/// "a number", "an object", for messages.
const char* type_of(const runner::core::Node& value);
/// Failure: no such field, or no text. `within`: in front of its name in messages.
runner::core::Result<std::string> text_of(const runner::core::Node& object, const std::string& key,
                                          const std::string& within = "");

}  // namespace components::data
