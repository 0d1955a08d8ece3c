#include "components/data/language/instruction_record.h"

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "components/data/fields/unread_fields.h"

namespace components::data {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;
using tokenizer::Message;

constexpr const char *kInstruction = "instruction", *kInput = "input", *kOutput = "output";
constexpr const char *kContext = "context", *kResponse = "response";  // Dolly's
constexpr const char *kSystem = "system", *kHistory = "history", *kAssistant = "assistant";

/// Alpaca's, of Taori et al. 2023.
constexpr const char* kAlpacaInput =
    "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
    "response "
    "that appropriately completes the request.\n\n### Instruction:\n";
constexpr const char* kAlpaca =
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n";

/// What an instruction asks for.
struct Task {
  std::string instruction, input;
};

Result<std::string> given_text(const Node& object, const std::string& key, const char* column,
                               std::initializer_list<const char*> others) {
  if (object.find(key) != nullptr) return text_of(object, key);
  for (const char* other : others) {
    if (!asks_for_something(object.find(other))) continue;
    return Failure{key + " is missing", std::string("name the field: columns: {") + column + ": " + other + "}"};
  }
  return Failure{key + " is missing", std::string("name the field: columns: {") + column + ": FIELD}"};
}

Result<Task> task_of(const Node& object, const InstructionKeys& keys) {
  auto instruction = given_text(object, keys.instruction, kInstruction, {"question", "query", "prompt"});
  if (!instruction) return instruction.failure();
  Task task{std::move(instruction.value()), ""};
  const Node* input = object.find(keys.input);
  if (input == nullptr || input->is_null()) return task;
  auto read = text_of(object, keys.input);
  if (!read) return read.failure();
  task.input = std::move(read.value());
  return task;
}

std::string alpaca_prompt(const Task& task) {
  const std::string asked = task.input.empty() ? kAlpaca + task.instruction
                                               : kAlpacaInput + task.instruction + "\n\n### Input:\n" + task.input;
  return asked + "\n\n### Response:\n";
}

/// The turns before an instruction, pairs of a question and an answer.
Result<std::vector<Message>> read_history(const Node& history) {
  if (!history.is_sequence()) {
    return Failure{std::string("history is ") + type_of(history) + ", not a list of [question, answer]", ""};
  }
  std::vector<Message> turns;
  for (std::size_t i = 0; i < history.items().size(); ++i) {
    const Node& turn = history.items()[i];
    const bool is_pair =
        turn.is_sequence() && turn.items().size() == 2 && turn.items()[0].is_string() && turn.items()[1].is_string();
    if (!is_pair) return Failure{"history[" + std::to_string(i) + "] is not [question, answer], two texts", ""};
    turns.push_back({"user", turn.items()[0].as_string()});
    turns.push_back({"assistant", turn.items()[1].as_string()});
  }
  return turns;
}

/// The messages in front of the answer.
Result<std::vector<Message>> messages_of(const Node& object, Task task) {
  std::vector<Message> messages;
  if (const Node* system = object.find(kSystem); system != nullptr && !system->is_null()) {
    auto text = text_of(object, kSystem);
    if (!text) return text.failure();
    if (!text.value().empty()) messages.push_back({kSystem, std::move(text.value())});
  }
  if (const Node* history = object.find(kHistory); history != nullptr && !history->is_null()) {
    auto turns = read_history(*history);
    if (!turns) return turns.failure();
    for (Message& turn : turns.value()) messages.push_back(std::move(turn));
  }
  if (!task.input.empty()) task.instruction += (task.instruction.empty() ? "" : "\n") + task.input;
  messages.push_back({"user", std::move(task.instruction)});
  return messages;
}

/// A record without its answers.
Result<TextRecord> asked_of(const Node& object, const InstructionKeys& keys, bool as_chat) {
  auto task = task_of(object, keys);
  if (!task) return task.failure();
  TextRecord record{.kind = TextRecord::Kind::kCompletion,
                    .read = {keys.instruction, keys.input},
                    .fields = {.form = FieldForm::kCompletion}};
  if (!as_chat) {
    record.prompt = alpaca_prompt(task.value());
    return record;
  }
  auto messages = messages_of(object, std::move(task.value()));
  if (!messages) return messages.failure();
  record.kind = TextRecord::Kind::kMessages;
  record.messages = std::move(messages.value());
  record.read.insert(record.read.end(), {kSystem, kHistory});
  record.fields.form = FieldForm::kInstruction;
  return record;
}

}  // namespace

InstructionKeys InstructionKeys::of(const Node& object, const RecordColumns& columns) {
  const auto named = [](const std::string& name, const char* usual) { return name.empty() ? usual : name; };
  const auto has = [&object](const char* key) {
    const Node* value = object.find(key);
    return value != nullptr && !value->is_null();
  };
  const bool is_dolly = columns.output.empty() && !has(kOutput) && has(kResponse);
  const bool has_context = is_dolly && !has(kInput) && has(kContext);
  InstructionKeys keys{named(columns.instruction, kInstruction), named(columns.input, has_context ? kContext : kInput),
                       named(columns.output, is_dolly ? kResponse : kOutput)};
  // A field that is named as another one is not the input as well.
  if (columns.input.empty() && (keys.input == keys.instruction || keys.input == keys.output)) keys.input.clear();
  return keys;
}

Result<TextRecord> read_instruction(const Node& object, const InstructionKeys& keys, bool as_chat) {
  auto record = asked_of(object, keys, as_chat);
  auto output = record ? given_text(object, keys.output, kOutput, {"response", "answer", "completion", "target"})
                       : Result<std::string>(record.failure());
  if (!output) return output.failure();
  record.value().read.push_back(keys.output);
  if (as_chat) {
    record.value().messages.push_back({kAssistant, std::move(output.value())});
  } else {
    record.value().text = std::move(output.value());
  }
  return record;
}

Result<TextRecord> read_instruction_pair(const Node& object, const InstructionKeys& keys, const std::string& chosen_key,
                                         const std::string& rejected_key, bool as_chat) {
  auto record = asked_of(object, keys, as_chat);
  if (!record) return record;
  auto chosen = text_of(object, chosen_key), rejected = text_of(object, rejected_key);
  if (!chosen || !rejected) return chosen ? rejected.failure() : chosen.failure();
  record.value().read.insert(record.value().read.end(), {chosen_key, rejected_key});
  record.value().kind = as_chat ? TextRecord::Kind::kMessagePair : TextRecord::Kind::kPair;
  if (as_chat) {
    record.value().chosen_messages = {{kAssistant, std::move(chosen.value())}};
    record.value().rejected_messages = {{kAssistant, std::move(rejected.value())}};
  } else {
    record.value().text = std::move(chosen.value());
    record.value().rejected = std::move(rejected.value());
  }
  return record;
}

}  // namespace components::data
