#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/tokenizer.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::tokenizer {

struct Message {
  std::string role, content;  ///< `system`, `user`, `assistant`, `tool`; of a content in parts, their texts
  /// What it says beside its content, such as `tool_calls`, for a template to read: a mapping, or null.
  runner::core::Node fields = {};
  bool has_content = true;  ///< else `content` is ""
  bool is_learnt = true;    ///< of an answer: it counts in the loss
};

/// What is written as one text.
struct Chat {
  std::vector<Message> messages;
  runner::core::Node tools = {};      ///< that an answer may call, for a template to read: a list, or null
  runner::core::Node variables = {};  ///< of this one alone, for a template to read: a mapping, or null
};

/// Bytes [begin, end) of a text that the assistant writes for a message: a part of the answer, or all of it and the
/// token that ends it.
struct Answer {
  std::size_t begin = 0, end = 0;
  std::size_t message = 0;  ///< index in Chat::messages
};

/// The parts of an answer's text that are thoughts, as jinja::thoughts_in(), all of message 0.
std::vector<Answer> thoughts_of(std::string_view answer);

/// A conversation as the text that a model was trained on.
struct Conversation {
  std::string text;
  std::vector<Answer> answers;  ///< in order, without overlap
  /// Parts of answers that are thoughts, with the marks around them: of a message's reasoning, or thoughts_of() its
  /// content.
  std::vector<Answer> thoughts = {};
};

/// Where the system message goes.
enum class SystemPlace {
  kAnyTurn,    ///< a turn of its own, anywhere
  kFirstTurn,  ///< a turn of its own, the first
  kFirstUser,  ///< into the first turn of the user
  kLastUser,   ///< into the last message, if that is the user's; else it is left out, as Mistral's templates do
  kNowhere,    ///< refused
};

/// How conversations become text: a small table of texts. Special tokens are written out, the first one, too: encode
/// the text without adding any. `{bos}` and `{eos}` are the tokenizer's tokens, see with_tokens_of().
struct ChatFormat {
  std::string name = {};
  std::string begin = {};                          ///< before everything
  std::optional<std::string> default_system = {};  ///< the message of a conversation without one
  std::string before_system = {}, after_system = {};
  std::string before_user = {}, after_user = {};
  std::string before_assistant = {};  ///< what a prompt for an answer ends with
  std::string assistant_start = {};   ///< what the assistant writes before each answer
  std::string assistant_end = {};     ///< what it writes behind it, the end token
  std::string after_assistant = {};
  std::string before_other = {};  ///< a turn of any other role, written for `{role}`; "": refused
  std::string after_other = {};
  SystemPlace system_in = SystemPlace::kAnyTurn;
  bool strip = false;      ///< contents lose the white space around them
  bool alternate = false;  ///< roles have to be user, assistant, user, ...

  /// `answer`: with the prompt for an answer at the end. Failure: no message, or what the format refuses: a role, or
  /// an order of roles.
  runner::core::Result<Conversation> render(const std::vector<Message>& messages, bool answer = false) const;
  /// A conversation whose last message, the assistant's, is the beginning of the answer that is to be generated: its
  /// text up to there. Failure: as render(), or the last message is another's.
  /// Source  `continue_final_message` of Transformers' apply_chat_template
  runner::core::Result<std::string> render_unfinished(const std::vector<Message>& messages) const;
  /// What stands before an answer that is to be generated; "" where the user's turn ends with it.
  const std::string& answer_prompt() const { return before_assistant; }
  /// The token that ends an answer, for generation to stop at.
  std::string end_of_turn() const;
  /// The format with `{bos}` and `{eos}` written out. Failure: the tokenizer has no such token.
  runner::core::Result<ChatFormat> with_tokens_of(const Tokenizer& tokenizer) const;
};

/// Those that have a name.
const std::vector<ChatFormat>& known_chat_formats();
/// Null for a name that is not known.
const ChatFormat* find_chat_format(std::string_view name);

}  // namespace components::tokenizer
