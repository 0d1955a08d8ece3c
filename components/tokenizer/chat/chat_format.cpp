#include "components/tokenizer/chat/chat_format.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "components/template/thoughts.h"
#include "components/tokenizer/chat/white_space.h"
#include "runner/core/text/text.h"

namespace components::tokenizer {
namespace {

using runner::core::Failure;
using runner::core::Result;

constexpr const char *kSystem = "system", *kUser = "user", *kAssistant = "assistant";

void replace(std::string& text, std::string_view name, std::string_view by) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + by.size())) {
    text.replace(at, name.size(), by);
  }
}

std::string replaced(std::string text, std::string_view name, std::string_view by) {
  replace(text, name, by);
  return text;
}

/// Writes one conversation.
class Writer {
 public:
  Writer(const ChatFormat& format, const std::vector<Message>& messages) : format_(format), messages_(messages) {}

  Result<Conversation> write(bool answer) {
    if (messages_.empty()) return Failure{"a conversation has no message", ""};
    whole_.text = format_.begin;
    std::string problem = system();
    for (std::size_t i = first_; i < messages_.size() && problem.empty(); ++i) problem = message(i);
    if (!problem.empty()) return Failure{problem, ""};
    if (answer) whole_.text += format_.before_assistant;
    return std::move(whole_);
  }

 private:
  std::string refusal(std::size_t index, const std::string& why) const {
    return "messages[" + std::to_string(index) + "] has the role \"" + messages_[index].role + "\", but in the chat " +
           "format " + format_.name + " " + why;
  }

  /// The message in front of all, written or kept for a turn of the user. What it returns is wrong, as below.
  std::string system() {
    const bool is_given = messages_.front().role == kSystem;
    std::optional<std::string> content = format_.default_system;
    if (is_given) content = messages_.front().content;
    if (!content) return "";
    first_ = is_given ? 1 : 0;
    switch (format_.system_in) {
      case SystemPlace::kAnyTurn:
      case SystemPlace::kFirstTurn: turn(format_.before_system, *content, format_.after_system); break;
      case SystemPlace::kFirstUser: within_ = {std::move(content), first_}; break;
      case SystemPlace::kLastUser: within_ = {std::move(content), messages_.size() - 1}; break;
      case SystemPlace::kNowhere:
        if (is_given) return refusal(0, "there is no system message");
        break;
    }
    return "";
  }

  std::string message(std::size_t index) {
    const std::string &role = messages_[index].role, &content = messages_[index].content;
    const std::size_t place = index - (messages_.front().role == kSystem ? 1 : 0);
    if (format_.alternate && role != (place % 2 == 0 ? kUser : kAssistant)) {
      return refusal(index, "roles alternate between user and assistant, after a system message at most");
    }
    if (role == kUser) {
      user(index);
    } else if (role == kAssistant) {
      assistant(index);
    } else if (role == kSystem) {
      if (format_.system_in != SystemPlace::kAnyTurn) return refusal(index, "only the first message may have it");
      turn(format_.before_system, content, format_.after_system);
    } else {
      if (format_.before_other.empty()) return refusal(index, "roles are system, user and assistant");
      turn(replaced(format_.before_other, "{role}", role), content, format_.after_other);
    }
    return "";
  }

  void turn(const std::string& before, const std::string& content, const std::string& after) {
    whole_.text += before;
    whole_.text += format_.strip ? without_white_space(content) : std::string_view(content);
    whole_.text += after;
  }

  void user(std::size_t index) {
    const std::string& content = messages_[index].content;
    const bool has_system = within_.content && within_.index == index;
    turn(format_.before_user,
         has_system ? format_.before_system + *within_.content + format_.after_system + content : content,
         format_.after_user);
  }

  void assistant(std::size_t index) {
    whole_.text += format_.before_assistant;
    const std::size_t begin = whole_.text.size();
    turn(format_.assistant_start, messages_[index].content, format_.assistant_end);
    const std::size_t end = whole_.text.size();
    whole_.answers.push_back({begin, end, index});
    const std::size_t first = begin + format_.assistant_start.size(), last = end - format_.assistant_end.size();
    for (const Answer& thought : thoughts_of(std::string_view(whole_.text).substr(first, last - first))) {
      whole_.thoughts.push_back({first + thought.begin, first + thought.end, index});
    }
    whole_.text += format_.after_assistant;
  }

  /// A system message within the turn of a user.
  struct Within {
    std::optional<std::string> content;
    std::size_t index = 0;
  };

  const ChatFormat& format_;
  const std::vector<Message>& messages_;
  Conversation whole_;
  Within within_;
  std::size_t first_ = 0;  ///< behind the system message
};

}  // namespace

std::vector<Answer> thoughts_of(std::string_view answer) {
  std::vector<Answer> thoughts;
  for (const jinja::Thought& thought : jinja::thoughts_in(answer)) thoughts.push_back({thought.begin, thought.end});
  return thoughts;
}

Result<Conversation> ChatFormat::render(const std::vector<Message>& messages, bool answer) const {
  return Writer(*this, messages).write(answer);
}

Result<std::string> ChatFormat::render_unfinished(const std::vector<Message>& messages) const {
  if (messages.empty() || messages.back().role != kAssistant) {
    return Failure{"the last message is not the assistant's, so there is no answer to continue", ""};
  }
  auto rendered = render(messages);
  if (!rendered) return rendered.failure();
  std::string text = std::move(rendered.value().text);
  text.resize(rendered.value().answers.back().begin);
  text += assistant_start;
  const std::string& content = messages.back().content;
  if (!strip) return text + content;
  text += without_leading_space(content);
  // Transformers writes a mark and a blank behind the content, and keeps white space where it finds both again: also in
  // a format that strips, if it writes a blank of its own there.
  if ((assistant_end + after_assistant).starts_with(' ')) return text;
  return std::string(without_trailing_space(text));
}

std::string ChatFormat::end_of_turn() const { return std::string(without_white_space(assistant_end)); }

Result<ChatFormat> ChatFormat::with_tokens_of(const Tokenizer& tokenizer) const {
  ChatFormat format = *this;
  std::string* const texts[] = {&format.begin,           &format.before_system, &format.after_system,
                                &format.before_user,     &format.after_user,    &format.before_assistant,
                                &format.assistant_start, &format.assistant_end, &format.after_assistant,
                                &format.before_other,    &format.after_other};
  struct Place {
    const char *name, *key;
    std::optional<std::int32_t> id;
  };
  const Place places[] = {{"{bos}", "bos_token", tokenizer.special().bos},
                          {"{eos}", "eos_token", tokenizer.special().eos}};
  for (const Place& place : places) {
    const bool is_used = std::any_of(std::begin(texts), std::end(texts), [&](const std::string* text) {
      return text->find(place.name) != std::string::npos;
    });
    if (!is_used) continue;
    const auto token = place.id ? tokenizer.token_of(*place.id) : std::nullopt;
    if (!token) {
      return Failure{"the chat format " + name + " writes the tokenizer's " + place.key + ", and it has none",
                     std::string("set ") + place.key + " in tokenizer_config.json beside it"};
    }
    for (std::string* text : texts) replace(*text, place.name, *token);
  }
  return format;
}

}  // namespace components::tokenizer
