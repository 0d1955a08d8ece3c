#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/result.h"

namespace components::tokenizer {

struct Message {
  std::string role, content;  ///< `system`, `user`, `assistant`
};

/// A conversation as the text that a model was trained on.
struct Conversation {
  std::string text;
  /// Bytes [begin, end) of `text` that the assistant writes: each answer and the token that ends it.
  std::vector<std::pair<std::size_t, std::size_t>> answers;
};

/// How conversations become text: a small table of texts, in place of the Jinja template that a folder of Transformers
/// holds. Special tokens are written out, and a tokenizer that adds more would double them.
struct ChatFormat {
  std::string name;
  std::string default_system;  ///< the message of a conversation without one; "": none
  std::string before_role, before_content, end_token, after_turn;
  std::string template_hash;  ///< XXH3 (128 bits, hexadecimal) of the template that it is; "": none that is known

  /// Failure: no message, or a role that the format does not know.
  runner::core::Result<Conversation> render(const std::vector<Message>& messages) const;
  /// What stands before an answer that is to be generated.
  std::string answer_prompt() const { return before_role + "assistant" + before_content; }
};

/// Null for a name that is not known.
const ChatFormat* find_chat_format(std::string_view name);
/// The format whose template a folder of Transformers holds, in chat_template.jinja or tokenizer_config.json. Failure:
/// there is none, or one that is not known; the hint says how to name a format.
runner::core::Result<const ChatFormat*> chat_format_of(const std::string& folder);

}  // namespace components::tokenizer
