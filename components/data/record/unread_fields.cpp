#include "components/data/record/unread_fields.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "components/data/block_location.h"
#include "components/data/text_utils.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

using runner::core::Node;

/// Words of Alpaca, ShareGPT, TRL, LLaMA-Factory and OpenAI that say more about a sample than its texts do.
constexpr std::array<std::string_view, 20> kBeside = {
    "system",    "system_prompt", "history",   "tools",
    "functions", "label",         "labels",    "reasoning_content",
    "images",    "image",         "videos",    "audios",
    "audio",     "video",         "documents", "weight",
    "train",     "training",      "margin",    "chat_template_kwargs"};
/// The texts of one form or another.
constexpr std::array<std::string_view, 14> kForms = {
    "text",  "prompt", "completion",    "chosen",   "rejected", "messages", "instruction",
    "input", "output", "conversations", "question", "query",    "answer",   "response"};
constexpr std::array<std::string_view, 10> kOfMessage = {
    "tool_calls",        "function_call", "tool_call_id", "name",  "thinking",
    "reasoning_content", "reasoning",     "images",       "audio", "videos"};

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

bool may_be_unread(std::string_view name) {
  return std::find(kBeside.begin(), kBeside.end(), name) != kBeside.end() ||
         std::find(kForms.begin(), kForms.end(), name) != kForms.end();
}

bool says_something(std::string_view name) {
  return std::find(kOfMessage.begin(), kOfMessage.end(), name) != kOfMessage.end();
}

std::vector<std::string> UnreadFields::add(const std::vector<std::string>& fields, const std::string& place) {
  std::vector<std::string> first;
  for (const std::string& name : fields) {
    Field& field = fields_[name];
    if (field.records++ > 0) continue;
    field.first = place;
    first.push_back(name);
  }
  return first;
}

void UnreadFields::tell(const Inputs& inputs, const std::string& of) const {
  if (fields_.empty()) return;
  inputs.diagnostics.warning(location_of(inputs.block, "path"),
                             "data." + inputs.name + ": " + of + "not read are " + text(), hint());
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

const char* UnreadFields::hint() {
  return "write what counts into the texts or messages, or remove it; `roux data show` shows what is learnt";
}

}  // namespace components::data
