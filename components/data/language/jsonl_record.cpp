#include "components/data/language/jsonl_record.h"

#include <utility>

#include "runner/core/json.h"
#include "runner/core/node.h"

namespace components::data {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;
using tokenizer::Message;

constexpr int kDepthMax = 64;
constexpr std::int64_t kValuesMax = 1'000'000;

/// Alpaca's, of Taori et al. 2023.
constexpr const char* kAlpacaInput =
    "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
    "response "
    "that appropriately completes the request.\n\n### Instruction:\n";
constexpr const char* kAlpaca =
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n";

const char* type_of(const Node& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a text";
  return value.is_sequence() ? "a list" : "an object";
}

Result<std::string> text_of(const Node& object, const std::string& key, const std::string& within = "") {
  const Node* value = object.find(key);
  if (value == nullptr) return Failure{within + key + " is missing", ""};
  if (!value->is_string()) return Failure{within + key + " is " + type_of(*value) + ", not a text", ""};
  return value->as_string();
}

/// ShareGPT's words for the roles.
std::string role_of(const std::string& from) {
  if (from == "human") return "user";
  return from == "gpt" ? "assistant" : from;
}

Result<std::vector<Message>> messages_of(const Node& list, const std::string& key, const char* role,
                                         const char* content) {
  if (!list.is_sequence()) return Failure{key + " is " + type_of(list) + ", not a list of messages", ""};
  std::vector<Message> messages;
  for (const Node& item : list.items()) {
    const std::string place = key + "[" + std::to_string(messages.size()) + "]";
    if (!item.is_mapping()) return Failure{place + " is " + type_of(item) + ", not a message", ""};
    const auto of_role = text_of(item, role, place + "."), of_content = text_of(item, content, place + ".");
    if (!of_role) return of_role.failure();
    if (!of_content) return of_content.failure();
    messages.push_back({role_of(of_role.value()), of_content.value()});
  }
  if (messages.empty()) return Failure{key + " is empty", ""};
  return messages;
}

Result<TextRecord> completion(const Node& object, const std::string& prompt_key, const std::string& completion_key) {
  const auto prompt = text_of(object, prompt_key), text = text_of(object, completion_key);
  if (!prompt) return prompt.failure();
  if (!text) return text.failure();
  return TextRecord{TextRecord::Kind::kCompletion, prompt.value(), text.value(), {}};
}

Result<TextRecord> instruction(const Node& object) {
  const auto task = text_of(object, "instruction"), output = text_of(object, "output");
  if (!task) return task.failure();
  if (!output) return output.failure();
  const Node* input = object.find("input");
  std::string given;
  if (input != nullptr && !input->is_null()) {
    const auto read = text_of(object, "input");
    if (!read) return read.failure();
    given = read.value();
  }
  const std::string prompt =
      (given.empty() ? kAlpaca + task.value() : kAlpacaInput + task.value() + "\n\n### Input:\n" + given) +
      "\n\n### Response:\n";
  return TextRecord{TextRecord::Kind::kCompletion, prompt, output.value(), {}};
}

Result<TextRecord> conversation(const Node& object, const std::string& key, const char* role, const char* content) {
  auto messages = messages_of(*object.find(key), key, role, content);
  if (!messages) return messages.failure();
  return TextRecord{TextRecord::Kind::kMessages, "", "", std::move(messages).value()};
}

}  // namespace

Result<TextRecord> parse_text_record(const std::string& line, const RecordColumns& columns) {
  const Result<Node> parsed = runner::core::parse_json(line, {kDepthMax, kValuesMax});
  if (!parsed) return Failure{"not valid JSON: " + parsed.failure().message, ""};
  const Node& object = parsed.value();
  if (!object.is_mapping()) return Failure{"not an object", ""};
  const auto given = [](const std::string& name, const char* usual) { return name.empty() ? usual : name; };
  const auto has = [&object](const std::string& key) { return object.find(key) != nullptr; };
  const std::string text = given(columns.text, "text"), prompt = given(columns.prompt, "prompt");
  const std::string answer = given(columns.completion, "completion"), messages = given(columns.messages, "messages");
  const auto whole = [&]() -> Result<TextRecord> {
    const auto read = text_of(object, text);
    if (!read) return read.failure();
    return TextRecord{TextRecord::Kind::kText, "", read.value(), {}};
  };
  // What is named is meant.
  if (!columns.text.empty()) return whole();
  if (!columns.prompt.empty() || !columns.completion.empty()) return completion(object, prompt, answer);
  if (!columns.messages.empty()) {
    if (!has(messages)) return Failure{messages + " is missing", ""};
    return conversation(object, messages, "role", "content");
  }
  if (has(text)) return whole();
  if (has(prompt) || has(answer)) return completion(object, prompt, answer);
  if (has("instruction")) return instruction(object);
  if (has(messages)) return conversation(object, messages, "role", "content");
  if (has("conversations")) return conversation(object, "conversations", "from", "value");
  return Failure{"has none of the fields text, prompt and completion, instruction, messages, conversations",
                 "name its fields: columns: {text: FIELD}, {prompt: FIELD, completion: FIELD} or {messages: FIELD}"};
}

}  // namespace components::data
