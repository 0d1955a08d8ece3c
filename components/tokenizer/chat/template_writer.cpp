#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "components/template/answers.h"
#include "components/template/template.h"
#include "components/template/thoughts.h"
#include "components/tokenizer/chat/chat_writer.h"
#include "components/tokenizer/chat/white_space.h"

namespace components::tokenizer {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

constexpr const char *kUser = "user", *kAssistant = "assistant";

jinja::RenderOptions options() {
  jinja::RenderOptions made;
  made.now.tm_year = 2024 - 1900;
  made.now.tm_mon = 6;
  made.now.tm_mday = 26;
  made.now.tm_wday = 5;
  made.now.tm_yday = 207;
  return made;
}

bool is_white(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

class TemplateWriter final : public ChatWriter {
 public:
  TemplateWriter(jinja::Template chat_template, Node variables)
      : template_(std::move(chat_template)), variables_(std::move(variables)) {
    const Chat shortest{.messages = {{kUser, "hi"}}};
    if (auto prompt = jinja::generation_prompt(template_, chat_of(shortest, false), options())) {
      prompt_ = std::move(prompt.value());
      const auto without = template_.render(chat_of(shortest, false), options());
      always_prompts_ = !prompt_->empty() && without && without.value().text.ends_with(*prompt_);
    }
    end_ = find_end();
  }

  Result<Conversation> render(const Chat& input, bool answer) const override {
    if (input.messages.empty()) return Failure{"a conversation has no message", ""};
    const jinja::Chat chat = chat_of(input, answer);
    auto rendering = template_.render(chat, options());
    if (!rendering) return rendering.failure();
    Conversation whole;
    if (!answer) {
      const auto ranges = learnt(chat, rendering.value());
      if (!ranges) return ranges.failure();
      const auto add = [](const jinja::Ranges& from, std::vector<Answer>& to) {
        for (const jinja::Range& range : from) {
          to.push_back({range.begin, range.end, static_cast<std::size_t>(range.message)});
        }
      };
      add(ranges.value(), whole.answers);
      add(jinja::thoughts_of(rendering.value(), ranges.value()), whole.thoughts);
    }
    whole.text = std::move(rendering.value().text);
    if (!answer && always_prompts_ && whole.text.ends_with(*prompt_)) {
      whole.text.resize(whole.text.size() - prompt_->size());
    }
    return whole;
  }

  Result<std::string> render_unfinished(const Chat& chat) const override {
    const std::vector<Message>& messages = chat.messages;
    if (messages.empty() || messages.back().role != kAssistant) {
      return Failure{"the last message is not the assistant's, so there is no answer to continue", ""};
    }
    if (without_white_space(messages.back().content).empty() && messages.size() > 1) {
      Chat before = chat;
      before.messages.pop_back();
      auto prompt = render(before, /*answer=*/true);
      if (!prompt) return prompt.failure();
      return std::move(prompt.value().text);
    }
    auto rendering = template_.render(chat_of(chat, false), options());
    if (!rendering) return rendering.failure();
    const auto last = static_cast<std::int32_t>(messages.size() - 1);
    const auto& pieces = rendering.value().pieces;
    const auto written = std::find_if(pieces.rbegin(), pieces.rend(), [last](const jinja::Piece& piece) {
      return piece.by_text && piece.message == last;
    });
    if (written == pieces.rend()) {
      return Failure{"the chat template does not write the beginning of the answer", ""};
    }
    return rendering.value().text.substr(0, written->end);
  }

  std::string end_of_turn() const override { return end_; }
  bool reads(std::string_view field) const override { return template_.names(field) && !jinja::is_of_chat(field); }

 private:
  jinja::Chat chat_of(const Chat& input, bool answer) const {
    jinja::Chat chat;
    for (const Message& message : input.messages) {
      Node one = Node::mapping();
      one.set("role", Node::string(message.role));
      if (message.has_content) one.set("content", Node::string(message.content));
      for (const Node::Entry& entry : message.fields.entries()) one.set(entry.key, entry.value);
      chat.messages.items().push_back(std::move(one));
    }
    chat.tools = input.tools;
    chat.add_generation_prompt = answer;
    chat.variables = variables_;
    for (const Node::Entry& entry : input.variables.entries()) chat.variables.set(entry.key, entry.value);
    return chat;
  }

  Result<jinja::Ranges> learnt(const jinja::Chat& chat, const jinja::Rendering& rendering) const {
    std::string own;  // of a template that refuses the shortest chat
    if (!prompt_ && !template_.has_generation()) {
      auto prompt = jinja::generation_prompt(template_, chat, options());
      if (!prompt) return prompt.failure();
      own = std::move(prompt.value());
    }
    auto ranges = jinja::answers_of(template_, chat, rendering, prompt_ ? *prompt_ : own);
    if (!ranges || template_.has_generation()) return ranges;
    for (jinja::Range& range : ranges.value()) range.end = without_line_end(rendering, range.begin, range.end);
    return ranges;
  }

  /// What an answer learns ends with its end token: the white space that a template writes behind that is no part of
  /// it.
  static std::size_t without_line_end(const jinja::Rendering& rendering, std::size_t begin, std::size_t end) {
    const auto& pieces = rendering.pieces;
    const auto by_template = [&pieces](std::size_t at) {
      const auto piece =
          std::partition_point(pieces.begin(), pieces.end(), [at](const jinja::Piece& one) { return one.end <= at; });
      return piece != pieces.end() && !piece->by_text;
    };
    std::size_t last = end;
    while (last > begin && is_white(rendering.text[last - 1]) && by_template(last - 1)) --last;
    return last > begin && by_template(last - 1) ? last : end;
  }

  /// Of the shortest conversation, what is learnt behind the answer's text.
  std::string find_end() const {
    const jinja::Chat chat = chat_of({.messages = {{kUser, "hi"}, {kAssistant, "Yes"}}}, false);
    const auto rendering = template_.render(chat, options());
    if (!rendering) return "";
    const auto ranges = learnt(chat, rendering.value());
    if (!ranges || ranges.value().empty()) return "";
    std::size_t text_end = 0;
    for (const jinja::Piece& piece : rendering.value().pieces) {
      if (piece.by_text && piece.message == 1) text_end = piece.end;
    }
    const std::size_t end = ranges.value().back().end;
    if (text_end == 0 || end <= text_end) return "";
    return std::string(without_white_space(std::string_view(rendering.value().text).substr(text_end, end - text_end)));
  }

  jinja::Template template_;
  Node variables_;
  std::optional<std::string> prompt_;
  bool always_prompts_ = false;  ///< behind each conversation, as the first template of Llama 3 did
  std::string end_;
};

}  // namespace

Result<ChatWriterPtr> template_writer(std::string_view text, const std::string& name, const Tokenizer& tokenizer,
                                      const Node& written) {
  auto parsed = jinja::Template::parse(text, name);
  if (!parsed) return parsed.failure();
  Node variables = Node::mapping();
  const SpecialTokens& special = tokenizer.special();
  const std::pair<const char*, std::optional<std::int32_t>> tokens[] = {
      {"bos_token", special.bos}, {"eos_token", special.eos}, {"pad_token", special.pad}, {"unk_token", special.unk}};
  for (const auto& [key, id] : tokens) {
    const auto token = id ? tokenizer.token_of(*id) : std::nullopt;
    if (token) variables.set(key, Node::string(*token));
  }
  for (const Node::Entry& entry : written.entries()) variables.set(entry.key, entry.value);
  return ChatWriterPtr(std::make_shared<const TemplateWriter>(std::move(parsed.value()), std::move(variables)));
}

}  // namespace components::tokenizer
