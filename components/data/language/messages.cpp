#include "components/data/language/messages.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "components/data/fields/unread_fields.h"
#include "runner/core/json.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;
using tokenizer::Message;

constexpr const char *kAssistant = "assistant", *kToolCalls = "tool_calls", *kFunctionCall = "function_call",
                     *kRefusal = "refusal";
constexpr int kDepthMax = 64;
constexpr std::int64_t kValuesMax = 1'000'000;

/// ShareGPT's words for the roles, and those of its sets with tools.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kSpeakers = {
    {{"human", "user"}, {"gpt", kAssistant}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kToolSpeakers = {
    {{"observation", "tool"}, {kFunctionCall, kAssistant}}};
/// What says whether an answer is learnt, of OpenAI, LLaMA-Factory and others.
constexpr std::array<std::string_view, 5> kLearnt = {"weight", "loss_weight", "train", "training", "loss"};
/// Names of one field, as templates are given it.
constexpr std::array<std::string_view, 3> kReasoning = {"reasoning_content", "thinking", "reasoning"};

bool is_one_of(std::string_view word, const auto& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

const Node* given(const Node& object, std::string_view key) {
  const Node* value = object.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<Node> parsed(const std::string& text) {
  auto value = runner::core::parse_json(text, {kDepthMax, kValuesMax});
  if (!value) return std::nullopt;
  return std::move(value.value());
}

/// Reads the messages of one list.
class Reader {
 public:
  Reader(const std::string& key, const MessageNames& names) : key_(key), names_(names) {}

  Result<MessagesRead> read(const std::vector<Node>& list) {
    for (const Node& item : list) {
      place_ = key_ + "[" + std::to_string(read_.messages.size()) + "]";
      if (!item.is_mapping()) return Failure{place_ + " is " + type_of(item) + ", not a message", ""};
      auto message = this->message(item);
      if (!message) return message.failure();
      read_.messages.push_back(std::move(message.value()));
    }
    if (read_.messages.empty()) return Failure{key_ + " is empty", ""};
    return std::move(read_);
  }

 private:
  bool reads(std::string_view field) const {
    if (!names_.reads) return false;
    if (!is_one_of(field, kReasoning)) return names_.reads(field);
    return std::any_of(kReasoning.begin(), kReasoning.end(), names_.reads);
  }

  void unread(std::string_view field) {
    std::string name = key_ + "[]." + std::string(field);
    if (!is_one_of(name, read_.unread)) read_.unread.push_back(std::move(name));
  }

  /// The field that the item has, of two usual ones.
  static std::string field_of(const std::string& named, const char* usual, const char* share_gpt, const Node& item) {
    if (!named.empty()) return named;
    return item.find(usual) == nullptr && item.find(share_gpt) != nullptr ? share_gpt : usual;
  }

  Result<Message> message(const Node& item) {
    const std::string role_key = field_of(names_.role, "role", "from", item);
    const std::string content_key = field_of(names_.content, "content", "value", item);
    const auto role = text_of(item, role_key, place_ + ".");
    if (!role) return role.failure();
    Message message;
    message.role = role.value();
    const bool is_share_gpt = role_key != "role", is_call = is_share_gpt && message.role == kFunctionCall;
    if (const auto own = names_.roles.find(message.role); own != names_.roles.end()) {
      message.role = own->second;
    } else {
      replace(message.role, kSpeakers);
      if (is_share_gpt) replace(message.role, kToolSpeakers);
    }
    if (auto wrong = read_learnt(item, message)) return *wrong;
    if (auto wrong = read_fields(item, role_key, content_key, message)) return *wrong;
    if (auto wrong = read_content(item, content_key, message)) return *wrong;
    if (is_call) take_call(message);
    return message;
  }

  static void replace(std::string& role, const auto& words) {
    for (const auto& [word, meant] : words) {
      if (role == word) {
        role = meant;
        return;
      }
    }
  }

  std::optional<Failure> read_learnt(const Node& item, Message& message) {
    for (const std::string_view field : kLearnt) {
      const Node* value = given(item, field);
      if (value == nullptr) continue;
      const bool is_switch =
          value->is_bool() || (value->is_number() && (value->as_double() == 0 || value->as_double() == 1));
      const std::string place = place_ + "." + std::string(field);
      if (!is_switch) {
        return Failure{place + " is " + (value->is_number() ? value->scalar_text() : type_of(*value)) +
                           ", and an answer counts in the loss or does not",
                       "write 1 or 0, true or false"};
      }
      const bool learnt = value->is_bool() ? value->as_bool() : value->as_double() != 0;
      if (message.role == kAssistant) {
        message.is_learnt = message.is_learnt && learnt;
      } else if (learnt && !field.ends_with("weight")) {
        return Failure{place + " is true for the role " + runner::core::quote(message.role) +
                           ", and only answers of the assistant can be learnt",
                       "set loss_on: all to learn every token, or remove " + std::string(field)};
      }
    }
    return std::nullopt;
  }

  std::optional<Failure> read_fields(const Node& item, const std::string& role_key, const std::string& content_key,
                                     Message& message) {
    for (const Node::Entry& entry : item.entries()) {
      if (!asks_for_something(&entry.value)) continue;
      const bool is_known = entry.key == role_key || entry.key == content_key || is_one_of(entry.key, kLearnt);
      const bool is_old_call = entry.key == kFunctionCall;
      const bool is_written = !is_known && (reads(entry.key) || (is_old_call && reads(kToolCalls)));
      read_.fields.add(key_ + "[]." + entry.key, is_known || is_written);
      if (is_known) continue;
      if (is_written) {
        if (auto wrong = bad_call(entry)) return wrong;
        if (!message.fields.is_mapping()) message.fields = Node::mapping();
        if (is_old_call && !reads(entry.key)) {
          message.fields.set(kToolCalls, Node::sequence({call_of(entry.value)}));
        } else {
          message.fields.set(entry.key, entry.key == kToolCalls ? calls_of(entry.value) : entry.value);
        }
      } else if (says_something(entry.key)) {
        unread(entry.key);
      }
    }
    return std::nullopt;
  }

  /// Of a field with calls, what a template would stumble on or write as it is.
  std::optional<Failure> bad_call(const Node::Entry& field) const {
    const std::string place = place_ + "." + field.key;
    if (field.key == kFunctionCall && !field.value.is_mapping()) {
      return Failure{place + " is " + type_of(field.value) + ", not a call", ""};
    }
    if (field.key != kToolCalls) return std::nullopt;
    const Node calls = calls_of(field.value);
    if (!calls.is_sequence()) return Failure{place + " is " + type_of(calls) + ", not a list of calls", ""};
    for (std::size_t i = 0; i < calls.items().size(); ++i) {
      const Node& call = calls.items()[i];
      if (!call.is_mapping()) {
        return Failure{place + "[" + std::to_string(i) + "] is " + type_of(call) + ", not a call", ""};
      }
    }
    return std::nullopt;
  }

  /// A call is one of a function. Its arguments stay what they are, an object or a text: templates tell them apart.
  static Node call_of(const Node& call) {
    if (!call.is_mapping()) return call;
    Node made = Node::mapping();
    const Node* function = given(call, "function");
    if (function == nullptr || !function->is_mapping()) {
      made.set("type", Node::string("function"));
      made.set("function", without_nulls(call));
      return made;
    }
    for (const Node::Entry& entry : call.entries()) {
      if (!entry.value.is_null()) made.set(entry.key, entry.key == "function" ? without_nulls(*function) : entry.value);
    }
    return made;
  }

  static Node without_nulls(const Node& function) {
    Node whole = Node::mapping();
    for (const Node::Entry& entry : function.entries()) {
      if (!entry.value.is_null()) whole.set(entry.key, entry.value);
    }
    return whole;
  }

  static Node calls_of(const Node& calls) {
    std::optional<Node> of_text;
    if (calls.is_string()) of_text = parsed(calls.as_string());
    const Node& list = of_text && of_text->is_sequence() ? *of_text : calls;
    if (!list.is_sequence()) return calls;
    Node made = Node::sequence();
    for (const Node& call : list.items()) made.items().push_back(call_of(call));
    return made;
  }

  /// A call that ShareGPT writes as the text of a message, where the chat format reads calls.
  void take_call(Message& message) const {
    if (!reads(kToolCalls)) return;
    const auto call = parsed(message.content);
    if (!call || (!call->is_mapping() && !call->is_sequence())) return;
    if (!message.fields.is_mapping()) message.fields = Node::mapping();
    message.fields.set(kToolCalls, calls_of(call->is_mapping() ? Node::sequence({*call}) : *call));
    message.content.clear();
    message.has_content = false;
  }

  /// The field of a message with a call of a tool; null for another.
  static const char* call_in(const Node& item) {
    for (const char* field : {kToolCalls, kFunctionCall}) {
      const Node* call = item.find(field);
      if (call != nullptr && !call->is_null() && asks_for_something(call)) return field;
    }
    return nullptr;
  }

  std::optional<Failure> read_content(const Node& item, const std::string& key, Message& message) {
    const Node* content = given(item, key);
    const bool is_empty = content == nullptr || (content->is_string() && content->as_string().empty()) ||
                          (content->is_sequence() && content->items().empty());
    if (const char* call = call_in(item); call != nullptr && is_empty) {
      message.has_content = content != nullptr;
      if (reads(kToolCalls) || reads(call)) return std::nullopt;
      return Failure{place_ + "." + call + " is not read, and without it the message is an empty answer",
                     "use the model's chat template, chat_format: {template: FILE}, or leave such records out: "
                     "on_bad_record: skip"};
    }
    if (given(item, kRefusal) != nullptr && is_empty && !reads(kRefusal)) {
      return Failure{place_ + "." + kRefusal + " is not read, and without it the message is an empty answer",
                     "write the refusal as its " + key + ", or leave such records out: on_bad_record: skip"};
    }
    if (content == nullptr || !content->is_sequence()) {
      auto text = text_of(item, key, place_ + ".");
      if (!text) return text.failure();
      message.content = std::move(text.value());
      return std::nullopt;
    }
    for (std::size_t i = 0; i < content->items().size(); ++i) {
      const std::string place = place_ + "." + key + "[" + std::to_string(i) + "]";
      if (auto wrong = read_part(content->items()[i], place, message)) return wrong;
    }
    return std::nullopt;
  }

  static std::optional<Failure> read_part(const Node& part, const std::string& place, Message& message) {
    if (part.is_string()) {
      message.content += part.as_string();
      return std::nullopt;
    }
    if (!part.is_mapping()) return Failure{place + " is " + type_of(part) + ", not a part of a message", ""};
    const Node* type = given(part, "type");
    if (type != nullptr && type->is_string() && type->as_string() != "text") {
      return Failure{place + " is of the type " + runner::core::quote(type->as_string()) + ", and only text is read",
                     "leave such records out: on_bad_record: skip"};
    }
    const bool is_value = given(part, "text") == nullptr && given(part, "value") != nullptr;  // LLaMA-Factory's
    auto text = text_of(part, is_value ? "value" : "text", place + ".");
    if (!text) return text.failure();
    message.content += text.value();
    return std::nullopt;
  }

  const std::string& key_;
  const MessageNames& names_;
  std::string place_;
  MessagesRead read_;
};

}  // namespace

const char* type_of(const Node& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a text";
  return value.is_sequence() ? "a list" : "an object";
}

Result<std::string> text_of(const Node& object, const std::string& key, const std::string& within) {
  const Node* value = object.find(key);
  if (value == nullptr) return Failure{within + key + " is missing", ""};
  if (!value->is_string()) return Failure{within + key + " is " + type_of(*value) + ", not a text", ""};
  return value->as_string();
}

Result<MessagesRead> read_messages(const Node& list, const std::string& key, const MessageNames& names) {
  if (list.is_mapping()) return Reader(key, names).read({list});
  if (!list.is_sequence()) return Failure{key + " is " + type_of(list) + ", not a list of messages", ""};
  return Reader(key, names).read(list.items());
}

Result<Node> read_tools(const Node& object, const std::string& key) {
  const Node* tools = given(object, key);
  if (tools == nullptr || !asks_for_something(tools)) return Node();
  std::optional<Node> of_text;
  if (tools->is_string()) of_text = parsed(tools->as_string());
  const Node& list = of_text ? *of_text : *tools;
  if (!list.is_sequence()) {
    return Failure{key + " is " + type_of(list) + ", not a list of tools" + (tools->is_string() ? " in JSON" : ""), ""};
  }
  for (std::size_t i = 0; i < list.items().size(); ++i) {
    const Node& tool = list.items()[i];
    if (!tool.is_mapping()) {
      return Failure{key + "[" + std::to_string(i) + "] is " + type_of(tool) + ", not a tool", ""};
    }
  }
  return list.items().empty() ? Node() : list;
}

}  // namespace components::data
