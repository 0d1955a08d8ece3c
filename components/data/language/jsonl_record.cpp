#include "components/data/language/jsonl_record.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "components/data/fields/unread_fields.h"
#include "components/data/language/instruction_record.h"
#include "components/data/language/messages.h"
#include "runner/core/json.h"
#include "runner/core/node.h"

namespace components::data {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;
using tokenizer::Message;

constexpr const char *kShareGpt = "conversations", *kUser = "user", *kAssistant = "assistant", *kSystem = "system";
constexpr const char* kVariables = "chat_template_kwargs";
constexpr int kDepthMax = 64;
constexpr std::int64_t kValuesMax = 1'000'000;

/// Or something that is neither a text nor messages.
bool is_text(const Node* value) { return value == nullptr || (!value->is_sequence() && !value->is_mapping()); }

/// Adds what the messages of a record do not read, and the fields that they have.
void add_fields(TextRecord& record, MessagesRead& read) {
  for (std::string& field : read.unread) record.unread.push_back(std::move(field));
  for (const std::string& field : read.fields.read) record.fields.add(field, true);
  for (const std::string& field : read.fields.unread) record.fields.add(field, false);
}

/// Of a text the message that it is, of a message or a list of them these.
Result<std::vector<Message>> messages_or_text(const Node& object, const std::string& key, const char* role,
                                              const MessageNames& names, TextRecord& record) {
  const Node* value = object.find(key);
  if (is_text(value)) {
    auto text = text_of(object, key);
    if (!text) return text.failure();
    return std::vector<Message>{{role, std::move(text.value())}};
  }
  auto read = read_messages(*value, key, names);
  if (!read) return read.failure();
  add_fields(record, read.value());
  return std::move(read.value().messages);
}

/// How to name what a record has in place of a prompt or a completion; "" where it has nothing like it.
std::string other_names(const Node& object, const std::string& prompt_key, const std::string& completion_key) {
  const auto found = [&object](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names) {
      if (asks_for_something(object.find(name))) return name;
    }
    return "";
  };
  if (const std::string list = found({"messages", kShareGpt}); !list.empty())
    return "name the conversation: columns: {messages: " + list + "}";
  const bool lacks_prompt = object.find(prompt_key) == nullptr, lacks_answer = object.find(completion_key) == nullptr;
  const std::string prompt = lacks_prompt ? found({"question", "query", "instruction", "input"}) : prompt_key;
  const std::string answer = lacks_answer ? found({"response", "answer", "output", "chosen"}) : completion_key;
  if (prompt.empty() || answer.empty()) return "";
  return "name its fields: columns: {prompt: " + prompt + ", completion: " + answer + "}";
}

Result<TextRecord> completion(const Node& object, const std::string& prompt_key, const std::string& completion_key,
                              const MessageNames& names) {
  for (const std::string& key : {prompt_key, completion_key}) {
    if (object.find(key) == nullptr) {
      return Failure{key + " is missing", other_names(object, prompt_key, completion_key)};
    }
  }
  if (is_text(object.find(prompt_key)) && is_text(object.find(completion_key))) {
    const auto prompt = text_of(object, prompt_key), text = text_of(object, completion_key);
    if (!prompt) return prompt.failure();
    if (!text) return text.failure();
    return TextRecord{.kind = TextRecord::Kind::kCompletion,
                      .prompt = prompt.value(),
                      .text = text.value(),
                      .read = {prompt_key, completion_key},
                      .fields = {.form = FieldForm::kCompletion}};
  }
  TextRecord record{.kind = TextRecord::Kind::kMessages, .read = {prompt_key, completion_key}};
  auto prompt = messages_or_text(object, prompt_key, kUser, names, record);
  auto answer = messages_or_text(object, completion_key, kAssistant, names, record);
  if (!prompt) return prompt.failure();
  if (!answer) return answer.failure();
  record.messages = std::move(prompt.value());
  record.completion_from = record.messages.size();
  for (Message& message : answer.value()) record.messages.push_back(std::move(message));
  return record;
}

Result<TextRecord> conversation(const Node& object, const std::string& key, const RecordColumns& columns) {
  const Node& list = *object.find(key);
  if (list.is_mapping()) return Failure{key + " is an object, not a list of messages", ""};
  auto read = read_messages(list, key, columns.of_messages);
  if (!read) return read.failure();
  TextRecord record{.kind = TextRecord::Kind::kMessages, .messages = std::move(read.value().messages), .read = {key}};
  add_fields(record, read.value());
  const std::string system_key = columns.system.empty() ? kSystem : columns.system;
  const Node* system = object.find(system_key);
  record.read.push_back(system_key);
  record.fields.form = FieldForm::kConversation;
  if (!asks_for_something(system)) return record;
  if (const Message& first = record.messages.front(); first.role == kSystem) {
    if (!system->is_string() || system->as_string() != first.content) record.unread.push_back(system_key);
    return record;
  }
  auto text = text_of(object, system_key);
  if (!text) return text.failure();
  record.messages.insert(record.messages.begin(), {kSystem, std::move(text.value())});
  return record;
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

bool same(const Message& a, const Message& b) {
  return a.role == b.role && a.content == b.content && a.fields.same_value(b.fields);
}

/// Moves what both conversations begin with to the prompt; the last message of the shorter one stays.
void take_prompt(TextRecord& record) {
  auto &one = record.chosen_messages, &other = record.rejected_messages;
  const std::size_t most = std::min(one.size(), other.size()) - 1;
  std::size_t at = 0;
  while (at < most && same(one[at], other[at])) ++at;
  const auto end = static_cast<std::ptrdiff_t>(at);
  record.messages.assign(one.begin(), one.begin() + end);
  one.erase(one.begin(), one.begin() + end);
  other.erase(other.begin(), other.begin() + end);
}

/// Whether a conversation repeats all of its prompt before the answer.
bool repeats(const std::vector<Message>& conversation, const std::vector<Message>& prompt) {
  return conversation.size() > prompt.size() && std::equal(prompt.begin(), prompt.end(), conversation.begin(), same);
}

/// A pair counts both answers whole, so that one cannot be context.
std::optional<Failure> unlearnt_answer(const TextRecord& record, const PairKeys& keys) {
  for (const auto& [key, messages] :
       {std::pair{&keys.chosen, &record.chosen_messages}, std::pair{&keys.rejected, &record.rejected_messages}}) {
    if (std::all_of(messages->begin(), messages->end(), [](const Message& message) { return message.is_learnt; })) {
      continue;
    }
    return Failure{*key +
                       " has an answer that is not to be learnt, by its weight, train or training, and a pair counts "
                       "both answers whole",
                   "remove that field, or leave such records out: on_bad_record: skip"};
  }
  return std::nullopt;
}

/// Takes the messages before both answers from the field of the prompt, or from what both begin with.
std::optional<Failure> read_prompt(TextRecord& record, const Node& object, const PairKeys& keys,
                                   const MessageNames& names) {
  const Node* prompt = object.find(keys.prompt);
  if (prompt != nullptr && prompt->is_null()) prompt = nullptr;
  // Some sets repeat the user's message as a text beside two whole conversations.
  const bool is_whole = record.chosen_messages.front().role != kAssistant;
  if (prompt != nullptr && !(prompt->is_string() && is_whole)) {
    auto of_prompt = messages_or_text(object, keys.prompt, kUser, names, record);
    if (!of_prompt) return of_prompt.failure();
    record.messages = std::move(of_prompt).value();
    // Others repeat all of its messages.
    auto &one = record.chosen_messages, &other = record.rejected_messages;
    if (repeats(one, record.messages) && repeats(other, record.messages)) {
      const auto messages = static_cast<std::ptrdiff_t>(record.messages.size());
      one.erase(one.begin(), one.begin() + messages);
      other.erase(other.begin(), other.begin() + messages);
    }
    return std::nullopt;
  }
  take_prompt(record);
  if (record.messages.empty()) {
    return Failure{keys.chosen + " and " + keys.rejected + " do not begin with the same message",
                   "give the messages before them as " + keys.prompt};
  }
  const auto is_prompt = [prompt](const Message& message) { return message.content == prompt->as_string(); };
  const bool is_repeated = prompt == nullptr || std::any_of(record.messages.begin(), record.messages.end(), is_prompt);
  if (!is_repeated && asks_for_something(prompt)) record.unread.push_back(keys.prompt);
  return std::nullopt;
}

Result<TextRecord> message_pair(const Node& object, const PairKeys& keys, const MessageNames& names) {
  TextRecord record{.kind = TextRecord::Kind::kMessagePair};
  auto chosen = messages_or_text(object, keys.chosen, kAssistant, names, record);
  auto rejected = messages_or_text(object, keys.rejected, kAssistant, names, record);
  if (!chosen) return chosen.failure();
  if (!rejected) return rejected.failure();
  record.chosen_messages = std::move(chosen).value();
  record.rejected_messages = std::move(rejected).value();
  if (auto wrong = read_prompt(record, object, keys, names)) return *wrong;
  if (auto wrong = unlearnt_answer(record, keys)) return *wrong;
  return record;
}

/// Whether the prompt of a pair has that text.
bool repeats_text(const TextRecord& record, const Node* field) {
  if (field == nullptr || !field->is_string()) return false;
  const std::string& text = field->as_string();
  return record.prompt.find(text) != std::string::npos ||
         std::any_of(record.messages.begin(), record.messages.end(),
                     [&](const Message& message) { return message.content.find(text) != std::string::npos; });
}

Result<TextRecord> pair(const Node& object, const PairKeys& keys, const MessageNames& names) {
  if (object.find(keys.chosen) == nullptr) return Failure{keys.chosen + " is missing", ""};
  if (object.find(keys.rejected) == nullptr) return Failure{keys.rejected + " is missing", ""};
  const bool are_texts =
      is_text(object.find(keys.chosen)) && is_text(object.find(keys.rejected)) && is_text(object.find(keys.prompt));
  auto record = are_texts ? text_pair(object, keys) : message_pair(object, keys, names);
  if (!record) return record;
  record.value().read = {keys.prompt, keys.chosen, keys.rejected};
  for (const char* question : {"question", "instruction", "query", "input"}) {
    if (repeats_text(record.value(), object.find(question))) record.value().read.emplace_back(question);
  }
  return record;
}

/// What the fields of a record are called.
struct Names {
  std::string text, answer, messages, label;
  PairKeys pair;
};

Names names_of(const RecordColumns& columns) {
  const auto given = [](const std::string& name, const char* usual) { return name.empty() ? usual : name; };
  return {given(columns.text, "text"),
          given(columns.completion, "completion"),
          given(columns.messages, "messages"),
          given(columns.label, "label"),
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
  return TextRecord{.text = read.value(), .read = {key}};
}

bool names_instruction(const RecordColumns& columns) {
  return !columns.instruction.empty() || !columns.input.empty() || !columns.output.empty();
}

/// As the prompt of Alpaca, or as a conversation.
Result<TextRecord> instruction(const Node& object, const RecordColumns& columns) {
  return read_instruction(object, InstructionKeys::of(object, columns), columns.instructions_are_chat);
}

/// Behind a prompt, or behind an instruction that `columns` names.
Result<TextRecord> pair_of(const Node& object, const Names& names, const RecordColumns& columns) {
  if (!names_instruction(columns)) return pair(object, names.pair, columns.of_messages);
  return read_instruction_pair(object, InstructionKeys::of(object, columns), names.pair.chosen, names.pair.rejected,
                               columns.instructions_are_chat);
}

/// The field of a conversation whose last message is the completion; "" for a record of another form.
std::string labelled_messages(const Node& object, const Names& names, const RecordColumns& columns) {
  if (!columns.messages.empty()) return names.messages;
  if (names_instruction(columns) || has(object, names.pair.prompt) || has(object, names.answer)) return "";
  return has(object, names.messages) ? names.messages : has(object, kShareGpt) ? kShareGpt : "";
}

/// Without its label.
Result<TextRecord> labelled_form(const Node& object, const Names& names, const RecordColumns& columns) {
  const std::string messages = labelled_messages(object, names, columns);
  const bool may_be_instruction = messages.empty() && columns.prompt.empty() && columns.completion.empty() &&
                                  !has(object, names.pair.prompt) && has(object, "instruction");
  const bool is_instruction = names_instruction(columns) || may_be_instruction;
  if (messages.empty() && !is_instruction) {
    for (const std::string& key : {names.pair.prompt, names.answer}) {
      if (!has(object, key)) {
        return Failure{
            key + " is missing",
            "a record has prompt, completion and label, or messages and label, or prompt, chosen and rejected"};
      }
    }
    return completion(object, names.pair.prompt, names.answer, columns.of_messages);
  }
  if (!messages.empty() && !has(object, messages)) return Failure{messages + " is missing", ""};
  Result<TextRecord> record = is_instruction ? instruction(object, columns) : conversation(object, messages, columns);
  if (!record || record.value().kind != TextRecord::Kind::kMessages) return record;
  const std::vector<Message>& all = record.value().messages;
  if (all.size() < 2 || all.back().role != kAssistant) {
    return Failure{messages + " does not end with an answer to another message, which the label is of",
                   "leave such records out: on_bad_record: skip"};
  }
  if (!all.back().is_learnt) {
    return Failure{messages + " ends with an answer that is not to be learnt, by its weight, train or training",
                   "remove that field, or leave such records out: on_bad_record: skip"};
  }
  record.value().completion_from = all.size() - 1;
  return record;
}

/// A prompt, a completion and whether it is a desirable one; or a pair.
Result<TextRecord> labelled_record(const Node& object, const Names& names, const RecordColumns& columns) {
  if (has(object, names.pair.chosen) || has(object, names.pair.rejected)) return pair_of(object, names, columns);
  Result<TextRecord> record = labelled_form(object, names, columns);
  if (!record) return record;
  if (!has(object, names.label)) {
    return Failure{names.label + " is missing",
                   "a record has prompt, completion and label, or messages and label, or prompt, chosen and rejected"};
  }
  const Node& label = *object.find(names.label);
  if (!label.is_bool()) {
    return Failure{names.label + " is " + type_of(label) + ", not true or false",
                   "write " + names.label + ": true for a desirable completion, false for another"};
  }
  record.value().desirable = label.as_bool();
  return record;
}

Result<TextRecord> read_form(const Node& object, const Names& names, const RecordColumns& columns) {
  const bool is_pair = has(object, names.pair.chosen) || has(object, names.pair.rejected);
  // What is named is meant.
  if (!columns.text.empty()) return whole_text(object, names.text);
  if (!columns.chosen.empty() || !columns.rejected.empty()) return pair_of(object, names, columns);
  if (names_instruction(columns)) return instruction(object, columns);
  if (!columns.prompt.empty() && columns.completion.empty() && !has(object, names.answer) && is_pair) {
    return pair(object, names.pair, columns.of_messages);
  }
  if (!columns.prompt.empty() || !columns.completion.empty()) {
    return completion(object, names.pair.prompt, names.answer, columns.of_messages);
  }
  if (!columns.messages.empty()) {
    if (!has(object, names.messages)) return Failure{names.messages + " is missing", ""};
    return conversation(object, names.messages, columns);
  }
  if (has(object, names.text)) return whole_text(object, names.text);
  if (is_pair) return pair(object, names.pair, columns.of_messages);
  if (has(object, names.pair.prompt) || has(object, names.answer)) {
    return completion(object, names.pair.prompt, names.answer, columns.of_messages);
  }
  if (has(object, "instruction")) return instruction(object, columns);
  if (has(object, names.messages)) return conversation(object, names.messages, columns);
  if (has(object, kShareGpt)) return conversation(object, kShareGpt, columns);
  return Failure{
      "has none of the fields text, prompt and completion, chosen and rejected, instruction, messages, "
      "conversations",
      "name its fields: columns: {text: FIELD}, {prompt: FIELD, completion: FIELD}, {instruction: FIELD, output: "
      "FIELD} "
      "or {messages: FIELD}"};
}

/// Whether an answer is marked as a bad one, as in data for KTO.
bool is_bad_answer(const TextRecord& record, const Node& object) {
  if (record.kind != TextRecord::Kind::kCompletion && record.kind != TextRecord::Kind::kMessages) return false;
  const Node* label = object.find("label");
  return label != nullptr && label->is_bool() && !label->as_bool();
}

/// The tools of a conversation whose format writes them, which are then among the fields that are read.
std::optional<Failure> add_tools(TextRecord& record, const Node& object, const RecordColumns& columns) {
  const bool is_chat = record.kind == TextRecord::Kind::kMessages || record.kind == TextRecord::Kind::kMessagePair;
  if (!is_chat || !columns.of_messages.reads || !columns.of_messages.reads("tools")) return std::nullopt;
  const std::string key = columns.tools.empty() ? "tools" : columns.tools;
  auto tools = read_tools(object, key);
  if (!tools) return tools.failure();
  record.tools = std::move(tools.value());
  record.read.push_back(key);
  return std::nullopt;
}

/// What a record says to the chat template, which is then among the fields that are read.
std::optional<Failure> add_variables(TextRecord& record, const Node& object, const RecordColumns& columns) {
  const Node* given = object.find(kVariables);
  const bool is_chat = record.kind == TextRecord::Kind::kMessages || record.kind == TextRecord::Kind::kMessagePair;
  if (!is_chat || given == nullptr || given->is_null()) return std::nullopt;
  if (!given->is_mapping()) return Failure{std::string(kVariables) + " is " + type_of(*given) + ", not an object", ""};
  record.read.emplace_back(kVariables);
  Node variables = Node::mapping();
  for (const Node::Entry& entry : given->entries()) {
    const bool is_read = columns.of_messages.reads && columns.of_messages.reads(entry.key);
    if (asks_for_something(&entry.value)) record.fields.add(std::string(kVariables) + "." + entry.key, is_read);
    if (is_read) {
      variables.set(entry.key, entry.value);
    } else if (asks_for_something(&entry.value)) {
      record.unread.push_back(std::string(kVariables) + "." + entry.key);
    }
  }
  record.variables = std::move(variables);
  return std::nullopt;
}

/// What else the record has: of this what means something, and all for the list of its fields.
void add_unread(TextRecord& record, const Node& object, const RecordColumns& columns) {
  const bool chosen_by_form = columns.text.empty() && columns.prompt.empty() && columns.completion.empty() &&
                              columns.messages.empty() && columns.chosen.empty() && columns.rejected.empty() &&
                              !names_instruction(columns) && !columns.labelled;
  const std::vector<std::string> not_used = record.unread;
  for (std::string& field : unread_fields(object, record.read, chosen_by_form)) {
    record.unread.push_back(std::move(field));
  }
  // Who names the field of an instruction may not know that some records have more to it.
  const bool is_instruction = columns.prompt == "instruction" || columns.prompt == "question";
  const Node* more = object.find("input");
  if (is_instruction && asks_for_something(more) && !repeats_text(record, more)) record.unread.emplace_back("input");
  std::vector<std::string> read = record.read;
  std::erase_if(read, [&](const std::string& field) {
    return std::find(not_used.begin(), not_used.end(), field) != not_used.end();
  });
  record.fields.add_all(object, read);
}

}  // namespace

Result<TextRecord> parse_text_record(const std::string& line, const RecordColumns& columns) {
  const Result<Node> parsed = runner::core::parse_json(line, {kDepthMax, kValuesMax});
  if (!parsed) {
    // A file that is indented has one such line before each record.
    const std::size_t brace = line.find('{');
    const bool is_indented = brace != std::string::npos && line.find_first_not_of("{ \t\r") == std::string::npos;
    return is_indented ? Failure{"an object over several lines",
                                 "write each record in one line, such as by `jq -c . FILE`, or all as one JSON array"}
                       : parsed.failure();
  }
  const Node& object = parsed.value();
  if (!object.is_mapping()) return Failure{"not an object", ""};
  const Names names = names_of(columns);
  Result<TextRecord> record =
      columns.labelled ? labelled_record(object, names, columns) : read_form(object, names, columns);
  if (!record) return record;
  if (!columns.labelled && is_bad_answer(record.value(), object)) {
    return Failure{"label is false: a bad answer would be learnt as a good one",
                   "use loss: kto, which learns from both, or leave such records out: on_bad_record: skip"};
  }
  if (columns.labelled && !record.value().is_pair()) record.value().read.push_back(names.label);
  if (auto wrong = add_tools(record.value(), object, columns)) return *wrong;
  // A good answer is learnt as one.
  if (const Node* label = object.find("label");
      label != nullptr && label->is_bool() && label->as_bool() && record.value().kind != TextRecord::Kind::kText) {
    record.value().read.emplace_back("label");
  }
  if (auto wrong = add_variables(record.value(), object, columns)) return *wrong;
  add_unread(record.value(), object, columns);
  return record;
}

}  // namespace components::data
