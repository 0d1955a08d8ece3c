#include "runner/words/reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <system_error>
#include <utility>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::words {
namespace {

using core::Node;
using Kind = Outcome::Kind;

constexpr std::size_t kShownMax = 40;

bool is_compound(const Node& value) { return value.is_sequence() || value.is_mapping(); }

/// As tables name values.
std::string text_of(const Node& value) {
  return core::lower(is_compound(value) ? core::to_json(value, -1) : value.scalar_text());
}

std::string shown(const Node& value) {
  const std::string text = is_compound(value) ? core::to_json(value, -1) : value.scalar_text();
  const std::string safe = core::escape_for_terminal(text);
  const std::string_view first = core::first_columns(safe, kShownMax);
  return first.size() < safe.size() ? std::string(first) + "..." : safe;
}

/// Null for a number that asks for nothing, such as 0 steps.
Node converted(const Node& value, Word::As as) {
  if (as == Word::As::kNumber && value.is_string()) {
    std::int64_t number = 0;
    const std::string& text = value.as_string();
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
    return is_whole ? Node::integer(number, value.location()) : value;
  }
  if (as == Word::As::kNumber || as == Word::As::kSame || !value.is_number()) return value;
  const double number = value.as_double();
  if (number == 0) return Node::null();
  if (as == Word::As::kInterval) {
    return number > 0 && number < 1 ? Node::string(core::number_text(number) + "dur", value.location()) : value;
  }
  const double part = std::max(1e-4, std::round(1e4 / number) / 1e4);
  return Node::string(core::to_json(Node::floating(part), -1) + "ep", value.location());
}

}  // namespace

Reader::Reader(const Table& table, const Node& config, const std::map<std::string, Rule>& rules,
               core::Diagnostics& diagnostics)
    : table_(table), config_(config), rules_(rules), diagnostics_(diagnostics) {}

void Reader::read() {
  read_block(config_, table_.words, "", draft_);
  for (const Word& word : table_.words) {
    const Node* value = config_.find(word.key);
    const bool is_left_to_tool = word.fallback && (value == nullptr || value->is_null());
    if (is_left_to_tool && draft_.find(word.path) == nullptr) draft_.put(word.path, *word.fallback);
  }
  std::set<std::string> done;
  for (const Word& word : table_.words) {
    if (!word.rule.empty() && done.insert(word.rule).second) rules_.at(word.rule)(*this);
  }
}

std::vector<Row> Reader::rows() const {
  std::vector<Row> sorted = rows_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
    return std::pair(a.location.line, a.location.column) < std::pair(b.location.line, b.location.column);
  });
  return sorted;
}

const Node* Reader::get(std::string_view key) const {
  const Node* value = config_.find(key);
  return value != nullptr && asks(*value) ? value : nullptr;
}

bool Reader::asks(const Node& value) const {
  const auto& nothing = table_.nothing;
  return asks_for_something(value) && std::find(nothing.begin(), nothing.end(), text_of(value)) == nothing.end();
}

void Reader::read_block(const Node& block, const std::vector<Word>& words, const std::string& prefix, Draft& draft) {
  std::vector<std::pair<const Word*, const Node::Entry*>> known;
  for (const Node::Entry& entry : block.entries()) {
    if (const Word* word = find(words, entry.key)) {
      known.emplace_back(word, &entry);
    } else if (asks(entry.value)) {
      unknown(entry, words, prefix);
    }
  }
  // In the order of the words, so that a later one of the same path goes before an earlier one.
  std::stable_sort(known.begin(), known.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [word, entry] : known) judge(*entry, *word, prefix, draft);
}

void Reader::unknown(const Node::Entry& entry, const std::vector<Word>& words, const std::string& prefix) {
  std::vector<std::string> names;
  for (const Word& word : words) {
    if (!word.key.ends_with('*')) names.push_back(word.key);
  }
  const std::string near = core::closest(entry.key, names);
  diagnostics_.error(entry.key_location,
                     core::quote(prefix + entry.key) + " is not a key of " + table_.tool + " that roux knows",
                     near.empty() ? "remove it if training does not depend on it" : "did you mean " + near + "?");
  rows_.push_back(
      {Kind::kRefused, prefix + entry.key, shown(entry.value), "not a key of " + table_.tool, entry.key_location});
}

Outcome Reader::outcome_of(const Word& word, const Node& value) const {
  if (word.values.empty() && !word.other) return word.outcome;
  const std::string text = text_of(value);
  if (const Outcome* outcome = listed(word, text)) return *outcome;
  if (word.other) return *word.other;
  std::vector<std::string> known, taken;
  for (const auto& [value_text, outcome] : word.values) {
    known.push_back(value_text);
    if (outcome.kind != Kind::kRefused && outcome.kind != Kind::kPlanned) taken.push_back(value_text);
  }
  const std::string near = core::closest(text, known);
  return {.kind = Kind::kRefused,
          .instead = near.empty() ? "use one of " + core::joined(taken) : "did you mean " + near + "?",
          .is_fatal = true};
}

void Reader::judge(const Node::Entry& entry, const Word& word, const std::string& prefix, Draft& draft) {
  const std::string text = text_of(entry.value);
  const bool is_listed = listed(word, text) != nullptr;
  if (!is_listed && !asks(entry.value)) return;
  if (std::find(word.nothing.begin(), word.nothing.end(), text) != word.nothing.end()) return;
  if (!word.needs.empty() && get(word.needs) == nullptr) {
    rows_.push_back({Kind::kNoEffect, prefix + entry.key, shown(entry.value),
                     "without " + word.needs + " it says nothing", entry.key_location});
    return;
  }
  const bool is_block = entry.value.is_mapping() || (entry.value.is_sequence() && entry.value.items()[0].is_mapping());
  if (!word.inner.empty() && is_block) {  // each of its keys has a row
    if (word.rule.empty()) read_block(entry.value, word.inner, prefix + entry.key + ".", draft);
    return;
  }
  const bool is_list = entry.value.is_sequence() || text.find(',') != std::string::npos;
  if (!word.rule.empty() && !word.values.empty() && is_list && !is_listed) {  // several such values
    for (const Node& item : items_of(entry.value)) {
      Node::Entry one = entry;
      one.value = item;
      tell(one, outcome_of(word, item), prefix + entry.key, word);
    }
    return;
  }
  const Outcome outcome = outcome_of(word, entry.value);
  for (const std::string& key : outcome.unless) {
    if (get(key) == nullptr) continue;
    rows_.push_back({Kind::kNoEffect, prefix + entry.key, shown(entry.value), "with " + key + " it says nothing",
                     entry.key_location});
    return;
  }
  tell(entry, outcome, prefix + entry.key, word);
  const bool is_taken = outcome.kind == Kind::kTaken || outcome.kind == Kind::kChanged;
  if (!word.rule.empty() || !is_taken) return;
  Node value = outcome.value ? *outcome.value : converted(entry.value, word.as);
  if (outcome.value) value.set_location(entry.value.location());
  if (!word.path.empty() && !value.is_null()) draft.put(word.path, std::move(value));
  for (const Node::Entry& also : outcome.also.entries()) draft.put(also.key, also.value);
}

void Reader::tell(const Node::Entry& entry, const Outcome& outcome, const std::string& key, const Word& word) {
  const bool is_of_value = !word.values.empty() || word.other;
  std::string text = outcome.text;
  if (outcome.kind == Kind::kTaken) {
    text = word.path;
    if (outcome.value && text_of(*outcome.value) != text_of(entry.value)) text += ": " + shown(*outcome.value);
  } else if (outcome.kind == Kind::kChanged) {
    const bool has_value = outcome.value && !outcome.value->is_null();
    text = word.path + (has_value ? ": " + shown(*outcome.value) : "") + "; " + outcome.text;
  } else if (outcome.kind == Kind::kRefused && text.empty()) {
    text = "no equivalent";
  }
  rows_.push_back({outcome.kind, key, shown(entry.value), text, entry.key_location});
  if (outcome.kind != Kind::kPlanned && outcome.kind != Kind::kRefused) return;
  const std::string what = !is_of_value ? entry.key
                           : is_compound(entry.value)
                               ? entry.key + " with this value"
                               : entry.key + " " + core::escape_for_terminal(entry.value.scalar_text());
  const std::string message = what + (outcome.kind == Kind::kRefused ? " has no equivalent" : " is not supported yet") +
                              (outcome.text.empty() ? "" : ": " + outcome.text);
  const core::Location at = is_of_value ? entry.value.location() : entry.key_location;
  if (outcome.is_fatal) {
    diagnostics_.error(at, message, outcome.instead);
  } else {
    diagnostics_.warning(at, message, outcome.instead);
  }
}

void Reader::refuse(const Node& at, const std::string& key, const std::string& message, const std::string& hint) {
  diagnostics_.error(at.location(), message, hint);
  note(key, Kind::kRefused, message);
}

void Reader::note(const std::string& key, Kind kind, const std::string& text) {
  for (Row& row : rows_) {
    if (row.key != key || row.kind == Kind::kRefused) continue;
    row.kind = kind;
    row.text = text;
  }
}

}  // namespace runner::words
