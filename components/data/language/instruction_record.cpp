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
constexpr const char *kSystem = "system", *kHistory = "history";

/// Alpaca's, of Taori et al. 2023.
constexpr const char* kAlpacaInput =
    "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
    "response "
    "that appropriately completes the request.\n\n### Instruction:\n";
constexpr const char* kAlpaca =
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n";

/// The texts of an instruction, as both forms have them.
struct Texts {
  std::string instruction, input, output;
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

Result<Texts> texts_of(const Node& object, const InstructionKeys& keys) {
  auto task = given_text(object, keys.instruction, kInstruction, {"question", "query", "prompt"});
  if (!task) return task.failure();
  auto output = given_text(object, keys.output, kOutput, {"response", "answer", "completion", "target"});
  if (!output) return output.failure();
  Texts texts{std::move(task.value()), "", std::move(output.value())};
  const Node* input = object.find(keys.input);
  if (input == nullptr || input->is_null()) return texts;
  auto read = text_of(object, keys.input);
  if (!read) return read.failure();
  texts.input = std::move(read.value());
  return texts;
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

}  // namespace

InstructionKeys InstructionKeys::of(const Node& object, const RecordColumns& columns) {
  const auto named = [](const std::string& name, const char* usual) { return name.empty() ? usual : name; };
  const auto has = [&object](const char* key) {
    const Node* value = object.find(key);
    return value != nullptr && !value->is_null();
  };
  const bool is_dolly = columns.output.empty() && !has(kOutput) && has(kResponse);
  const bool has_context = is_dolly && !has(kInput) && has(kContext);
  return {named(columns.instruction, kInstruction), named(columns.input, has_context ? kContext : kInput),
          named(columns.output, is_dolly ? kResponse : kOutput)};
}

Result<TextRecord> read_instruction(const Node& object, const InstructionKeys& keys) {
  auto texts = texts_of(object, keys);
  if (!texts) return texts.failure();
  auto& [task, input, output] = texts.value();
  const std::string prompt =
      (input.empty() ? kAlpaca + task : kAlpacaInput + task + "\n\n### Input:\n" + input) + "\n\n### Response:\n";
  return TextRecord{.kind = TextRecord::Kind::kCompletion,
                    .prompt = prompt,
                    .text = std::move(output),
                    .read = {keys.instruction, keys.input, keys.output},
                    .fields = {.form = FieldForm::kCompletion}};
}

Result<TextRecord> read_instruction_as_chat(const Node& object, const InstructionKeys& keys) {
  auto texts = texts_of(object, keys);
  if (!texts) return texts.failure();
  auto& [question, input, output] = texts.value();
  TextRecord record{.kind = TextRecord::Kind::kMessages,
                    .read = {keys.instruction, keys.input, keys.output, kSystem, kHistory},
                    .fields = {.form = FieldForm::kInstruction}};
  if (const Node* system = object.find(kSystem); system != nullptr && !system->is_null()) {
    auto text = text_of(object, kSystem);
    if (!text) return text.failure();
    if (!text.value().empty()) record.messages.push_back({kSystem, std::move(text.value())});
  }
  if (!input.empty()) question += (question.empty() ? "" : "\n") + input;
  if (const Node* history = object.find(kHistory); history != nullptr && !history->is_null()) {
    auto turns = read_history(*history);
    if (!turns) return turns.failure();
    for (Message& turn : turns.value()) record.messages.push_back(std::move(turn));
  }
  record.messages.push_back({"user", std::move(question)});
  record.messages.push_back({"assistant", std::move(output)});
  return record;
}

}  // namespace components::data
