#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/chat/chat_format.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::tokenizer {

/// How conversations become text: by a table of texts (ChatFormat) or by a template of Jinja. Several threads may write
/// at a time.
class ChatWriter {
 public:
  ChatWriter() = default;
  ChatWriter(const ChatWriter&) = delete;
  ChatWriter& operator=(const ChatWriter&) = delete;
  virtual ~ChatWriter() = default;

  /// As ChatFormat's. A template may refuse in words of its own.
  virtual runner::core::Result<Conversation> render(const Chat& chat, bool answer = false) const = 0;
  virtual runner::core::Result<std::string> render_unfinished(const Chat& chat) const = 0;
  /// Whether a field of a message or of the chat, such as `tool_calls` or `tools`, can show in the text. Roles and
  /// contents always do.
  virtual bool reads(std::string_view field) const = 0;
  /// The text that ends an answer, for generation to stop at where it is a token; "" where there is none.
  virtual std::string end_of_turn() const = 0;
};

using ChatWriterPtr = std::shared_ptr<const ChatWriter>;

/// By a format, with the tokenizer's tokens. Failure: it has no such token.
runner::core::Result<ChatWriterPtr> chat_writer(const ChatFormat& format, const Tokenizer& tokenizer);
/// By a template, with the tokenizer's tokens and further variables, a mapping or null. `name`: its file, for messages.
/// Failure: what cannot be parsed.
/// `strftime_now` of a template tells 26 July 2024, the date that Llama's have without a clock: a text has to be the
/// same tomorrow.
runner::core::Result<ChatWriterPtr> template_writer(std::string_view text, const std::string& name,
                                                    const Tokenizer& tokenizer,
                                                    const runner::core::Node& variables = {});
struct FoundTemplate {
  std::string text, name;  ///< `name`: for messages
};

/// The chat template of a folder: a file of its own goes before the field of tokenizer_config.json, as in Transformers.
/// Failure: there is none, or none called `default` of several.
runner::core::Result<FoundTemplate> template_in(const std::string& folder);

/// By the template beside the tokenizer's file. Failure: there is none, or it cannot be parsed; the hint says how to
/// name a format.
runner::core::Result<ChatWriterPtr> chat_writer_of(const Tokenizer& tokenizer,
                                                   const runner::core::Node& variables = {});
/// By what a recipe writes as `chat_format`: the name of a format, a mapping of texts, or `{template: FILE, variables:
/// {NAME: VALUE}}`, where the template beside the tokenizer is used if none is named. Null when an error was reported.
ChatWriterPtr written_chat_writer(const runner::core::Node& node, const Tokenizer& tokenizer,
                                  runner::core::Diagnostics& diagnostics);
/// The file of `{template: FILE}`; "" of what names none.
std::string written_template_file(const runner::core::Node& node);

}  // namespace components::tokenizer
