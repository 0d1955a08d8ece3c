#include "components/data/language/jsonl_record.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "components/data/record/unread_fields.h"
#include "runner/core/json.h"
#include "runner/core/node.h"

namespace components::data {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;
using tokenizer::Message;

constexpr const char* kShareGpt = "conversations";
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

/// The field of a message with a call of a tool and nothing else; null for another message.
const char* call_without_content(const Node& message, const char* content) {
  const Node* text = message.find(content);
  if (text != nullptr && !text->is_null() && !(text->is_string() && text->as_string().empty())) return nullptr;
  for (const char* field : {"tool_calls", "function_call"}) {
    const Node* call = message.find(field);
    if (call != nullptr && (!call->items().empty() || !call->entries().empty())) return field;
  }
  return nullptr;
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
    if (const char* call = call_without_content(item, content)) {
      return Failure{place + "." + call + " is not read, and without it the message is an empty answer",
                     "write the call into content as the model is to say it, or leave such records out: "
                     "on_bad_record: skip"};
    }
    if (!of_content) return of_content.failure();
    // What says that a message is not trained on would be ignored.
    for (const char* field : {"weight", "train", "training"}) {
      const Node* value = item.find(field);
      if (value == nullptr) continue;
      const bool is_left_out =
          (value->is_bool() && !value->as_bool()) || (value->is_number() && value->as_double() != 1);
      if (!is_left_out) continue;
      return Failure{place + "." + field + " is " + value->scalar_text() +
                         ", and a part of the answers alone cannot be trained on",
                     std::string("remove ") + field + " to train on all answers, or write prompt and completion"};
    }
    messages.push_back({role_of(of_role.value()), of_content.value()});
  }
  if (messages.empty()) return Failure{key + " is empty", ""};
  return messages;
}

Result<TextRecord> completion(const Node& object, const std::string& prompt_key, const std::string& completion_key) {
  const auto prompt = text_of(object, prompt_key), text = text_of(object, completion_key);
  if (!prompt) return prompt.failure();
  if (!text) return text.failure();
  return TextRecord{.kind = TextRecord::Kind::kCompletion, .prompt = prompt.value(), .text = text.value()};
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
  return TextRecord{.kind = TextRecord::Kind::kCompletion, .prompt = prompt, .text = output.value()};
}

/// The turns before an instruction, pairs of a question and an answer.
Failure bad_history(const Node& history) {
  return {std::string("history is ") + type_of(history) + ", not a list of [question, answer]", ""};
}

Result<TextRecord> instruction_as_chat(const Node& object) {
  const auto task = text_of(object, "instruction"), output = text_of(object, "output");
  if (!task) return task.failure();
  if (!output) return output.failure();
  TextRecord record{.kind = TextRecord::Kind::kMessages};
  std::string question = task.value();
  for (const char* key : {"system", "input"}) {
    const Node* value = object.find(key);
    if (value == nullptr || value->is_null()) continue;
    const auto read = text_of(object, key);
    if (!read) return read.failure();
    if (read.value().empty()) continue;
    if (key == std::string_view("system")) {
      record.messages.push_back({"system", read.value()});
    } else {
      question += (question.empty() ? "" : "\n") + read.value();
    }
  }
  const Node* history = object.find("history");
  if (history != nullptr && !history->is_null()) {
    if (!history->is_sequence()) return bad_history(*history);
    for (const Node& turn : history->items()) {
      const bool is_pair =
          turn.is_sequence() && turn.items().size() == 2 && turn.items()[0].is_string() && turn.items()[1].is_string();
      if (!is_pair) return bad_history(turn);
      record.messages.push_back({"user", turn.items()[0].as_string()});
      record.messages.push_back({"assistant", turn.items()[1].as_string()});
    }
  }
  record.messages.push_back({"user", std::move(question)});
  record.messages.push_back({"assistant", output.value()});
  return record;
}

Result<TextRecord> conversation(const Node& object, const std::string& key, const char* role, const char* content) {
  auto messages = messages_of(*object.find(key), key, role, content);
  if (!messages) return messages.failure();
  return TextRecord{.kind = TextRecord::Kind::kMessages, .messages = std::move(messages).value()};
}

/// The names of a pair's fields.
struct PairKeys {
  std::string prompt, chosen, rejected;
};

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Where two texts begin to differ, as TRL's extract_prompt says: a blank before that belongs to what follows, and of
/// a text that is the beginning of the other the last character does.
std::size_t common_prompt(const std::string& one, const std::string& other) {
  const std::size_t both = std::min(one.size(), other.size());
  std::size_t at = 0;
  while (at < both && one[at] == other[at]) ++at;
  if (at == both) {
    if (at > 0) --at;
    while (at > 0 && continues_character(one[at])) --at;
    return at;
  }
  while (at > 0 && (continues_character(one[at]) || continues_character(other[at]))) --at;
  return at > 0 && one[at - 1] == ' ' ? at - 1 : at;
}

Result<TextRecord> text_pair(const Node& object, const PairKeys& keys) {
  const auto chosen = text_of(object, keys.chosen), rejected = text_of(object, keys.rejected);
  if (!chosen) return chosen.failure();
  if (!rejected) return rejected.failure();
  TextRecord record{.kind = TextRecord::Kind::kPair, .text = chosen.value(), .rejected = rejected.value()};
  if (const Node* given = object.find(keys.prompt); given != nullptr && !given->is_null()) {
    const auto prompt = text_of(object, keys.prompt);
    if (!prompt) return prompt.failure();
    record.prompt = prompt.value();
    return record;
  }
  const std::size_t at = common_prompt(record.text, record.rejected);
  record.prompt = record.text.substr(0, at);
  // Unless both repeat it, the question would be lost, and a word that they begin with would take its place.
  for (const char* field : {"question", "instruction", "query", "input"}) {
    const Node* question = object.find(field);
    if (question == nullptr || !question->is_string() || question->as_string().empty()) continue;
    if (record.prompt.find(question->as_string()) != std::string::npos) continue;
    return Failure{keys.prompt + " is missing, and " + keys.chosen + " and " + keys.rejected +
                       " do not begin with the text of " + field,
                   std::string("name the field of the prompt: columns: {prompt: ") + field + "}"};
  }
  record.text.erase(0, at);
  record.rejected.erase(0, at);
  return record;
}

/// Moves what both conversations begin with to the prompt; the last message of the shorter one stays.
void take_prompt(TextRecord& record) {
  auto &one = record.chosen_messages, &other = record.rejected_messages;
  const std::size_t most = std::min(one.size(), other.size()) - 1;
  std::size_t at = 0;
  while (at < most && one[at].role == other[at].role && one[at].content == other[at].content) ++at;
  const auto end = static_cast<std::ptrdiff_t>(at);
  record.messages.assign(one.begin(), one.begin() + end);
  one.erase(one.begin(), one.begin() + end);
  other.erase(other.begin(), other.begin() + end);
}

Result<TextRecord> message_pair(const Node& object, const PairKeys& keys) {
  TextRecord record{.kind = TextRecord::Kind::kMessagePair};
  const Node* rejected = object.find(keys.rejected);
  if (rejected == nullptr) return Failure{keys.rejected + " is missing", ""};
  auto of_chosen = messages_of(*object.find(keys.chosen), keys.chosen, "role", "content");
  auto of_rejected = messages_of(*rejected, keys.rejected, "role", "content");
  if (!of_chosen) return of_chosen.failure();
  if (!of_rejected) return of_rejected.failure();
  record.chosen_messages = std::move(of_chosen).value();
  record.rejected_messages = std::move(of_rejected).value();
  const Node* prompt = object.find(keys.prompt);
  if (prompt != nullptr && prompt->is_null()) prompt = nullptr;
  // Some sets repeat the user's message as a text beside two whole conversations.
  const bool is_whole = record.chosen_messages.front().role != "assistant";
  if (prompt != nullptr && !(prompt->is_string() && is_whole)) {
    auto of_prompt = messages_of(*prompt, keys.prompt, "role", "content");
    if (!of_prompt) return of_prompt.failure();
    record.messages = std::move(of_prompt).value();
    return record;
  }
  take_prompt(record);
  if (record.messages.empty()) {
    return Failure{keys.chosen + " and " + keys.rejected + " do not begin with the same message",
                   "give the messages before them as " + keys.prompt};
  }
  return record;
}

Result<TextRecord> pair(const Node& object, const PairKeys& keys) {
  const Node* chosen = object.find(keys.chosen);
  if (chosen == nullptr) return Failure{keys.chosen + " is missing", ""};
  return chosen->is_sequence() ? message_pair(object, keys) : text_pair(object, keys);
}

/// What the fields of a record are called.
struct Names {
  std::string text, answer, messages;
  PairKeys pair;
};

Names names_of(const RecordColumns& columns) {
  const auto given = [](const std::string& name, const char* usual) { return name.empty() ? usual : name; };
  return {given(columns.text, "text"),
          given(columns.completion, "completion"),
          given(columns.messages, "messages"),
          {given(columns.prompt, "prompt"), given(columns.chosen, "chosen"), given(columns.rejected, "rejected")}};
}

/// Tools that write all fields of a table write null for those that a record does not have.
bool has(const Node& object, const std::string& key) {
  const Node* value = object.find(key);
  return value != nullptr && !value->is_null();
}

Result<TextRecord> whole_text(const Node& object, const std::string& key) {
  const auto read = text_of(object, key);
  if (!read) return read.failure();
  return TextRecord{.text = read.value()};
}

Result<TextRecord> read_form(const Node& object, const Names& names, const RecordColumns& columns) {
  const bool is_pair = has(object, names.pair.chosen) || has(object, names.pair.rejected);
  // What is named is meant.
  if (!columns.text.empty()) return whole_text(object, names.text);
  if (!columns.chosen.empty() || !columns.rejected.empty()) return pair(object, names.pair);
  if (!columns.prompt.empty() && columns.completion.empty() && !has(object, names.answer) && is_pair) {
    return pair(object, names.pair);
  }
  if (!columns.prompt.empty() || !columns.completion.empty()) {
    return completion(object, names.pair.prompt, names.answer);
  }
  if (!columns.messages.empty()) {
    if (!has(object, names.messages)) return Failure{names.messages + " is missing", ""};
    return conversation(object, names.messages, "role", "content");
  }
  if (has(object, names.text)) return whole_text(object, names.text);
  if (is_pair) return pair(object, names.pair);
  if (has(object, names.pair.prompt) || has(object, names.answer)) {
    return completion(object, names.pair.prompt, names.answer);
  }
  if (has(object, "instruction"))
    return columns.instructions_are_chat ? instruction_as_chat(object) : instruction(object);
  if (has(object, names.messages)) return conversation(object, names.messages, "role", "content");
  if (has(object, kShareGpt)) return conversation(object, kShareGpt, "from", "value");
  return Failure{
      "has none of the fields text, prompt and completion, chosen and rejected, instruction, messages, "
      "conversations",
      "name its fields: columns: {text: FIELD}, {prompt: FIELD, completion: FIELD} or {messages: FIELD}"};
}

/// The fields that a record of this kind is made of.
std::vector<std::string> fields_of(const TextRecord& record, const Node& object, const Names& names,
                                   const RecordColumns& columns) {
  const bool is_instruction = columns.instructions_are_chat && columns.messages.empty() && has(object, "instruction");
  switch (record.kind) {
    case TextRecord::Kind::kText: return {names.text};
    case TextRecord::Kind::kCompletion:
      if (has(object, names.answer)) return {names.pair.prompt, names.answer};
      return {"instruction", "input", "output"};
    case TextRecord::Kind::kMessages:
      if (is_instruction) return {"instruction", "input", "output", "system", "history"};
      return {has(object, names.messages) ? names.messages : kShareGpt};
    case TextRecord::Kind::kPair:
    case TextRecord::Kind::kMessagePair: break;
  }
  // A question that is none of the prompt was refused.
  return {names.pair.prompt, names.pair.chosen, names.pair.rejected, "question", "instruction", "query", "input"};
}

/// Whether an answer is marked as a bad one, as in data for KTO.
bool is_bad_answer(const TextRecord& record, const Node& object) {
  if (record.kind != TextRecord::Kind::kCompletion && record.kind != TextRecord::Kind::kMessages) return false;
  const Node* label = object.find("label");
  return label != nullptr && label->is_bool() && !label->as_bool();
}

}  // namespace

Result<TextRecord> parse_text_record(const std::string& line, const RecordColumns& columns) {
  if (line == "[" || line.starts_with("[{")) {
    return Failure{"the beginning of a JSON array, and each line is a record",
                   "write one record a line: jq -c '.[]' FILE.json > FILE.jsonl"};
  }
  const Result<Node> parsed = runner::core::parse_json(line, {kDepthMax, kValuesMax});
  if (!parsed) return parsed.failure();
  const Node& object = parsed.value();
  if (!object.is_mapping()) return Failure{"not an object", ""};
  const Names names = names_of(columns);
  Result<TextRecord> record = read_form(object, names, columns);
  if (!record) return record;
  if (is_bad_answer(record.value(), object)) {
    return Failure{"label is false: a bad answer would be learnt as a good one",
                   "leave such records out: on_bad_record: skip"};
  }
  std::vector<std::string> read = fields_of(record.value(), object, names, columns);
  const std::vector<std::string> lists = read;
  // A good answer is learnt as one.
  if (const Node* label = object.find("label");
      label != nullptr && label->is_bool() && label->as_bool() && record.value().kind != TextRecord::Kind::kText) {
    read.emplace_back("label");
  }
  const bool chosen_by_form = columns.text.empty() && columns.prompt.empty() && columns.completion.empty() &&
                              columns.messages.empty() && columns.chosen.empty() && columns.rejected.empty();
  record.value().unread = unread_fields(object, read, chosen_by_form);
  for (const std::string& key : lists) {
    const Node* list = object.find(key);
    if (list == nullptr || !list->is_sequence()) continue;
    for (std::string& field : unread_of_messages(*list, key)) record.value().unread.push_back(std::move(field));
  }
  return record;
}

}  // namespace components::data
