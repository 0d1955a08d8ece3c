#include "runner/words/reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
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

/// A text, or a list of one.
bool names_one(const Node& value) {
  if (value.is_sequence()) return value.items().size() == 1 && value.items().front().is_string();
  return value.is_string();
}

/// The places of a value and of all that is in it.
void add_places(const Node& value, std::vector<core::Location>& places) {
  places.push_back(value.location());
  if (value.is_sequence()) {
    for (const Node& item : value.items()) add_places(item, places);
  }
  if (!value.is_mapping()) return;
  for (const Node::Entry& entry : value.entries()) {
    places.push_back(entry.key_location);
    add_places(entry.value, places);
  }
}

bool is_kept(const Row& row) { return row.kind == Kind::kTaken || row.kind == Kind::kChanged; }

/// Of a list of which one value is refused no other is taken.
void drop_taken_beside_refused(std::vector<Row>& rows) {
  std::set<std::string> refused;
  for (const Row& row : rows) {
    if (row.kind == Kind::kRefused) refused.insert(row.key);
  }
  std::erase_if(rows, [&](const Row& row) { return is_kept(row) && refused.count(row.key) > 0; });
}

/// Whether the word has the value among those that ask for nothing.
bool is_nothing(const Word& word, const Node& value) {
  return std::find(word.nothing.begin(), word.nothing.end(), text_of(value)) != word.nothing.end();
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
  if (as == Word::As::kList) return Node::sequence(items_of(value), value.location());
  if (as == Word::As::kModel) {
    const bool is_one = value.is_sequence() && value.items().size() == 1;
    return Node::string(model_path((is_one ? value.items().front() : value).scalar_text()), value.location());
  }
  if (as == Word::As::kNumber || as == Word::As::kSame || !value.is_number()) return value;
  const double number = value.as_double();
  if (number == 0) return Node::null();
  if (as == Word::As::kEpochs) return Node::string(core::number_text(number) + "ep", value.location());
  if (as == Word::As::kInterval) {
    return number > 0 && number < 1 ? Node::string(core::number_text(number) + "dur", value.location()) : value;
  }
  const double part = std::max(1e-4, std::round(1e4 / number) / 1e4);
  return Node::string(core::to_json(Node::floating(part), -1) + "ep", value.location());
}

}  // namespace

Reader::Reader(const Table& table, const Node& config, const std::map<std::string, Rule>& rules,
               core::Diagnostics& diagnostics, std::map<std::string, std::string> facts)
    : table_(table), config_(config), rules_(rules), diagnostics_(diagnostics) {
  for (auto& [name, value] : facts) facts_.emplace(name, Node::string(std::move(value)));
}

void Reader::read() {
  read_block(config_, table_.words, "", draft_);
  std::set<std::string> done;
  for (const Word& word : table_.words) {
    if (!word.rule.empty() && done.insert(word.rule).second) rules_.at(word.rule)(*this);
  }
}

void Reader::add_row(const Node::Entry& entry, Kind kind, const std::string& key, const std::string& text) {
  Row row{kind, key, shown(entry.value), text, entry.key_location, {}};
  add_places(entry.value, row.places);
  rows_.push_back(std::move(row));
}

std::vector<Row> Reader::rows() const {
  std::vector<Row> sorted = rows_;
  drop_taken_beside_refused(sorted);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
    return std::pair(a.location.line, a.location.column) < std::pair(b.location.line, b.location.column);
  });
  return sorted;
}

const Node* Reader::get(std::string_view key) const {
  const Node* value = config_.find(key);
  if (value == nullptr) value = config_.at_path(key);
  if (value == nullptr || !asks(*value)) return nullptr;
  const Word* word = find(table_.words, key);
  return word != nullptr && is_nothing(*word, *value) ? nullptr : value;
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
    } else {
      add_row(entry, Kind::kNoEffect, prefix + entry.key, "not a key of " + table_.tool + ", and asks for nothing");
    }
  }
  // In the order of the words, so that a later one of the same path goes before an earlier one.
  std::stable_sort(known.begin(), known.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [word, entry] : known) judge(*entry, *word, block, prefix, draft);
  put_fallbacks(block, words, draft, /*computed=*/false);
  put_fallbacks(block, words, draft, /*computed=*/true);
}

void Reader::put_fallbacks(const Node& block, const std::vector<Word>& words, Draft& draft, bool computed) const {
  for (const Word& word : words) {
    const Node* value = block.find(word.key);
    const bool is_left_to_tool = word.fallback && (value == nullptr || value->is_null());
    if (!is_left_to_tool || computed != !word.fallback_of.empty() || draft.find(word.path) != nullptr) continue;
    if (!idle(word, word.outcome, block).empty()) continue;
    const Node* base = computed ? draft.find(word.fallback_of) : nullptr;
    if (!computed) {
      draft.put(word.path, *word.fallback);
    } else if (base != nullptr && base->is_integer() && word.fallback->is_integer()) {
      draft.put(word.path, Node::integer(word.fallback->as_integer() * base->as_integer()));
    }
  }
}

std::string Reader::idle(const Word& word, const Outcome& outcome, const Node& block) const {
  const auto beside = [&](const std::string& key) -> const Node* {
    if (const auto fact = facts_.find(key); fact != facts_.end()) return &fact->second;
    const Node* value = block.find(key);
    return value != nullptr && asks(*value) ? value : get(key);
  };
  if (!word.needs.empty() && beside(word.needs) == nullptr) return "without " + word.needs + " it says nothing";
  for (const std::string& key : outcome.unless) {
    if (beside(key) != nullptr) return "with " + key + " it says nothing";
  }
  for (const auto& [key, values] : word.when) {
    const Node* value = beside(key);
    const Word* other = value == nullptr && block.find(key) == nullptr ? find(table_.words, key) : nullptr;
    if (other != nullptr && other->fallback) value = &*other->fallback;
    if (value != nullptr && std::find(values.begin(), values.end(), text_of(*value)) != values.end()) continue;
    const std::span others = std::span(values).first(values.size() - 1);
    return "it counts only beside " + key + ": " + core::joined(others) + (others.empty() ? "" : " or ") +
           values.back();
  }
  return "";
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
  add_row(entry, Kind::kRefused, prefix + entry.key, "not a key of " + table_.tool);
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

void Reader::judge(const Node::Entry& entry, const Word& word, const Node& block, const std::string& prefix,
                   Draft& draft) {
  const std::string text = text_of(entry.value), key = prefix + entry.key;
  const bool is_listed = listed(word, text) != nullptr;
  // A block whose keys have words each; where it is a list, a rule reads it.
  const bool is_block = !word.inner.empty() && word.rule.empty() && word.values.empty() && !word.other &&
                        word.outcome.kind == Kind::kTaken;
  if (is_block && !entry.value.is_mapping() && (entry.value.is_sequence() || asks(entry.value))) {
    add_row(entry, Kind::kTaken, key, "");
    return refuse(entry.value, key, key + " must be a mapping",
                  "write " + entry.key + ": {" + word.inner.front().key + ": ...}, or remove it");
  }
  if ((!is_listed && !asks(entry.value)) || is_nothing(word, entry.value)) {
    add_row(entry, Kind::kNoEffect, key, "");
    rows_.back().asks = false;  // a rule may make more of it, see note()
    return;
  }
  if (const std::string why = idle(word, word.outcome, block); !why.empty())
    return add_row(entry, Kind::kNoEffect, key, why);
  const bool has_blocks =
      entry.value.is_mapping() || (entry.value.is_sequence() && entry.value.items()[0].is_mapping());
  if (word.inner.empty() || !has_blocks) return judge_value(entry, word, block, prefix, draft);
  if (is_block) read_block(entry.value, word.inner, key + ".", draft);  // each of its keys has a row
}

void Reader::judge_value(const Node::Entry& entry, const Word& word, const Node& block, const std::string& prefix,
                         Draft& draft) {
  const std::string text = text_of(entry.value);
  const bool is_list = entry.value.is_sequence() || text.find(',') != std::string::npos;
  if (!word.rule.empty() && !word.values.empty() && is_list && listed(word, text) == nullptr) {  // several such values
    for (const Node& item : items_of(entry.value)) {
      Node::Entry one = entry;
      one.value = item;
      tell(one, outcome_of(word, item), prefix + entry.key, word);
    }
    return;
  }
  const Outcome outcome = outcome_of(word, entry.value);
  if (const std::string why = idle(word, outcome, block); !why.empty())
    return add_row(entry, Kind::kNoEffect, prefix + entry.key, why);
  if (word.as == Word::As::kModel && !names_one(entry.value)) {
    add_row(entry, Kind::kTaken, prefix + entry.key, "");
    return refuse(entry.value, prefix + entry.key, prefix + entry.key + " must be the name of one folder",
                  "write " + entry.key + ": FOLDER, or OWNER/NAME of the Hub");
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
  add_row(entry, outcome.kind, key, text);
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
    if (row.key != key || row.kind == Kind::kRefused || (!row.asks && kind == Kind::kNoEffect)) continue;
    row.asks = true;
    row.kind = kind;
    row.text = text;
  }
}

void refuse_where_wrong(std::vector<Row>& rows, const core::Diagnostics& diagnostics) {
  for (const core::Diagnostic& diagnostic : diagnostics.all()) {
    const core::Location& at = diagnostic.location;
    if (diagnostic.severity != core::Severity::kError || !at.known() || at.line == 0) continue;
    const auto is_at = [&](const core::Location& place) {
      return place.source == at.source && place.line == at.line && place.column == at.column;
    };
    std::set<std::string> keys;  // a command line has the same place for all its words
    for (const Row& row : rows) {
      if (std::any_of(row.places.begin(), row.places.end(), is_at)) keys.insert(row.key);
    }
    if (keys.size() != 1) continue;
    for (Row& row : rows) {
      if (row.key != *keys.begin() || !is_kept(row)) continue;
      row.kind = Kind::kRefused;
      row.text = diagnostic.message;
    }
  }
  drop_taken_beside_refused(rows);
}

}  // namespace runner::words
