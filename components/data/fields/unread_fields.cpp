#include "components/data/fields/unread_fields.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "components/data/block_location.h"
#include "components/data/text_utils.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

using runner::core::Node;

/// Words of Alpaca, ShareGPT, TRL, LLaMA-Factory and OpenAI that say more about a sample than its texts do, and further
/// ones that mean the same.
constexpr auto kBeside = std::to_array<std::string_view>({"system",
                                                          "system_prompt",
                                                          "system_message",
                                                          "system_instruction",
                                                          "instructions",
                                                          "persona",
                                                          "personas",
                                                          "character",
                                                          "scenario",
                                                          "history",
                                                          "context",
                                                          "contexts",
                                                          "passage",
                                                          "passages",
                                                          "background",
                                                          "knowledge",
                                                          "documents",
                                                          "tools",
                                                          "functions",
                                                          "label",
                                                          "labels",
                                                          "margin",
                                                          "weight",
                                                          "loss_weight",
                                                          "sample_weight",
                                                          "loss",
                                                          "loss_mask",
                                                          "mask",
                                                          "train",
                                                          "training",
                                                          "learn",
                                                          "thought",
                                                          "thoughts",
                                                          "thinking",
                                                          "reasoning",
                                                          "rationale",
                                                          "cot",
                                                          "chain_of_thought",
                                                          "reasoning_content",
                                                          "images",
                                                          "image",
                                                          "videos",
                                                          "video",
                                                          "audios",
                                                          "audio",
                                                          "chat_template_kwargs"});
/// Of these the hint says how they are read.
constexpr auto kOfInstruction = std::to_array<std::string_view>({"system", "history"});
constexpr auto kInputs = std::to_array<std::string_view>({"context", "contexts", "input", "passage", "background"});
constexpr auto kSystems = std::to_array<std::string_view>(
    {"system_prompt", "system_message", "system_instruction", "instructions", "persona"});
/// The texts of one form or another.
constexpr std::array<std::string_view, 14> kForms = {
    "text",  "prompt", "completion",    "chosen",   "rejected", "messages", "instruction",
    "input", "output", "conversations", "question", "query",    "answer",   "response"};
constexpr auto kOfMessage = std::to_array<std::string_view>({"tool_calls",
                                                             "function_call",
                                                             "tool_call_id",
                                                             "name",
                                                             "tools",
                                                             "thinking",
                                                             "reasoning_content",
                                                             "reasoning",
                                                             "thought",
                                                             "thoughts",
                                                             "rationale",
                                                             "context",
                                                             "documents",
                                                             "images",
                                                             "image",
                                                             "audio",
                                                             "audios",
                                                             "video",
                                                             "videos",
                                                             "mask",
                                                             "loss_mask",
                                                             "learn",
                                                             "persona",
                                                             "system",
                                                             "chain_of_thought",
                                                             "refusal"});

bool is_one_of(std::string_view word, const auto& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

bool asks_for_something(const Node* value) {
  if (value == nullptr || value->is_null()) return false;
  if (value->is_string()) return !value->as_string().empty();
  if (value->is_sequence()) return !value->items().empty();
  return !value->is_mapping() || !value->entries().empty();
}

std::vector<std::string> unread_fields(const Node& record, const std::vector<std::string>& read, bool any_form) {
  std::vector<std::string> unread;
  const auto look_at = [&](std::string_view name) {
    const bool is_read = std::find(read.begin(), read.end(), name) != read.end();
    if (!is_read && asks_for_something(record.find(name))) unread.emplace_back(name);
  };
  for (const std::string_view name : kBeside) look_at(name);
  for (const std::string_view name : kForms) {
    if (any_form) look_at(name);
  }
  return unread;
}

bool may_be_unread(std::string_view name) { return is_one_of(name, kBeside) || is_one_of(name, kForms); }

bool says_something(std::string_view name) { return is_one_of(name, kOfMessage); }

std::vector<std::string> UnreadFields::add(const std::vector<std::string>& fields, const std::string& place,
                                           FieldForm form) {
  std::vector<std::string> first;
  for (const std::string& name : fields) {
    Field& field = fields_[name];
    field.forms.insert(form);
    if (field.records++ > 0) continue;
    field.first = place;
    first.push_back(name);
  }
  return first;
}

void UnreadFields::tell(const Inputs& inputs, const std::string& of) const {
  if (fields_.empty()) return;
  inputs.diagnostics.warning(location_of(inputs.block, "path"),
                             "data." + inputs.name + ": " + of + "not read are " + text(), hint(names()));
}

std::string UnreadFields::text() const {
  std::vector<std::string> texts;
  for (const auto& [name, field] : fields_) {
    texts.push_back(name + " of " + counted_large(field.records, "record", "records") + ", such as " + field.first);
  }
  return runner::core::joined(texts, "; ");
}

std::string UnreadFields::text_of_first(const std::vector<std::string>& fields, const std::string& place) {
  return runner::core::joined(fields) + (fields.size() == 1 ? " is" : " are") + " not read, such as of " + place;
}

std::vector<std::string> UnreadFields::names() const {
  std::vector<std::string> names;
  for (const auto& [name, field] : fields_) names.push_back(name);
  return names;
}

std::string UnreadFields::hint(const std::vector<std::string>& fields) const {
  const auto first_of = [&](const auto& list, std::initializer_list<FieldForm> forms) {
    for (const std::string& name : fields) {
      const auto at = fields_.find(name);
      if (!is_one_of(name, list) || at == fields_.end()) continue;
      const auto has = [&](FieldForm form) { return at->second.forms.contains(form); };
      if (std::any_of(forms.begin(), forms.end(), has)) return name;
    }
    return std::string();
  };
  std::string remedies;
  if (!first_of(kOfInstruction, {FieldForm::kCompletion}).empty()) {
    remedies += "with a chat_format, such as chatml, system and history of an instruction are read; ";
  }
  const std::string input = first_of(kInputs, {FieldForm::kCompletion, FieldForm::kInstruction});
  if (!input.empty()) {
    remedies += "columns: {instruction: FIELD, input: " + input + ", output: FIELD} reads " + input +
                " as the input of an instruction; ";
  }
  const std::string system = first_of(kSystems, {FieldForm::kConversation});
  if (!system.empty()) remedies += "columns: {system: " + system + "} reads it as the system message; ";
  return remedies + (remedies.empty() ? "" : "or ") +
         "write what counts into the texts or messages, or remove it; `roux data show` shows what is learnt";
}

}  // namespace components::data
