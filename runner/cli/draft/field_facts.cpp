#include "runner/cli/draft/field_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace runner::cli {
namespace {

using core::Node;

bool is_bound(const std::string& tag) { return tag == "O" || tag.starts_with("B-") || tag.starts_with("I-"); }

/// A message whose role is none of those that are not learnt; a conversation may have words of its own.
bool is_answer(const Node& message) {
  const Node* role = message.find("role") != nullptr ? message.find("role") : message.find("from");
  static constexpr std::array<std::string_view, 6> kOthers = {"user", "human",       "system",
                                                              "tool", "observation", "developer"};
  return role == nullptr || !role->is_string() || std::ranges::find(kOthers, role->as_string()) == kOthers.end();
}

void add_list(FieldFacts& field, const std::vector<Node>& items) {
  const auto all = [&items](auto is) { return !items.empty() && std::all_of(items.begin(), items.end(), is); };
  if (items.empty()) {
    ++field.empty_lists;
  } else if (all([](const Node& item) { return item.is_string(); })) {
    ++field.text_lists;
    const bool has =
        std::any_of(items.begin(), items.end(), [](const Node& tag) { return tag.as_string().size() > 1; });
    field.has_bounds |= has && all([](const Node& tag) { return is_bound(tag.as_string()); });
  } else if (all([](const Node& item) { return item.is_number(); })) {
    ++field.number_lists;
  } else if (all([](const Node& item) { return item.is_mapping(); })) {
    ++field.mapping_lists;
    field.is_dialogue |= items.front().find("role") != nullptr || items.front().find("from") != nullptr;
    field.has_answer |= std::ranges::any_of(items, is_answer);
  }
}

/// `before`: the text of the last one.
void add(FieldFacts& field, const Node& value, std::string& before) {
  ++field.records;
  if (value.is_sequence()) return add_list(field, value.items());
  if (value.is_mapping()) {
    ++field.mappings;
    const auto is_text = [](const Node::Entry& entry) { return entry.value.is_string(); };
    if (field.mappings > 1 || !std::ranges::all_of(value.entries(), is_text)) return;
    for (const Node::Entry& entry : value.entries()) field.keys.push_back(entry.key);
    return;
  }
  if (value.is_string()) {
    ++field.texts;
    field.mean_length += static_cast<double>(value.as_string().size());
  } else if (value.is_bool()) {
    ++field.switches;
  } else {
    ++(value.as_double() == std::floor(value.as_double()) ? field.whole : field.numbers);
  }
  std::string text = value.scalar_text();
  if (field.records > 1 && text != before) ++field.changes;
  if (field.values.size() < FieldFacts::kValuesMax && field.values.insert(text).second)
    field.newest = field.records - 1;
  before = std::move(text);
}

}  // namespace

std::vector<FieldFacts> facts_of(const std::vector<Node>& records) {
  std::vector<FieldFacts> fields;
  std::map<std::string, std::string> last;
  for (const Node& record : records) {
    for (const Node::Entry& entry : record.entries()) {
      if (entry.value.is_null()) continue;
      auto at =
          std::find_if(fields.begin(), fields.end(), [&](const FieldFacts& one) { return one.name == entry.key; });
      if (at == fields.end()) {
        at = fields.insert(fields.end(), FieldFacts{});
        at->name = entry.key;
      }
      add(*at, entry.value, last[entry.key]);
    }
  }
  for (FieldFacts& field : fields) field.mean_length /= static_cast<double>(std::max<std::int64_t>(field.texts, 1));
  return fields;
}

const FieldFacts* find(const std::vector<FieldFacts>& fields, const std::string& name) {
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const FieldFacts& one) { return one.name == name; });
  return at == fields.end() ? nullptr : &*at;
}

}  // namespace runner::cli
