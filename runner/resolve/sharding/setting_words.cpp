#include "runner/resolve/sharding/setting_words.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/registry/alias.h"
#include "runner/registry/wording.h"

namespace runner::resolve {

using core::Location;
using core::lower;
using core::Node;
using registry::described;
using registry::is_override;
using registry::line_beside;
using Kind = words::Outcome::Kind;

namespace {

bool is_auto(const Node& value) { return value.is_string() && lower(value.as_string()) == "auto"; }

/// `1` and `1.0` are one value.
bool is_same(const Node& a, const Node& b) {
  const auto left = number_of(a), right = number_of(b);
  if (left && right) return *left == *right;
  if (a.is_sequence() && b.is_sequence())
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), is_same);
  // Where a list may stand, so may its only item.
  if (a.is_sequence() && a.items().size() == 1) return is_same(a.items().front(), b);
  if (b.is_sequence() && b.items().size() == 1) return is_same(a, b.items().front());
  return a.same_value(b);
}

std::string shown(const Node& value) {
  if (value.is_null()) return "none";
  if (!value.is_sequence()) return value.is_mapping() ? "{...}" : value.scalar_text();
  std::string text;
  for (const Node& item : value.items())
    text += (text.empty() ? "" : ", ") + (item.is_mapping() ? core::to_json(item, -1) : item.scalar_text());
  return "[" + text + "]";
}

}  // namespace

std::optional<bool> flag_of(const Node& value) {
  if (value.is_bool()) return value.as_bool();
  if (!value.is_string()) return std::nullopt;
  const std::string text = lower(value.as_string());
  if (text == "true" || text == "yes") return true;
  if (text == "false" || text == "no") return false;
  return std::nullopt;
}

std::optional<double> number_of(const Node& value) {
  if (value.is_number()) return value.as_double();
  if (!value.is_string() || value.as_string().empty()) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(value.as_string().c_str(), &end);
  return *end == '\0' && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

Node number_node(double number, const Location& location) {
  const bool whole = std::floor(number) == number && std::abs(number) < 1e15;
  return whole ? Node::integer(static_cast<std::int64_t>(number), location) : Node::floating(number, location);
}

Node as_written(const Node& value) {
  const auto number = number_of(value);
  const bool is_power = value.is_number() && value.scalar_text().find_first_of("eE") != std::string::npos;
  const bool is_whole = number && std::floor(*number) == *number;
  return number && (value.is_string() || (is_power && is_whole)) ? number_node(*number, value.location()) : value;
}

SettingWords::SettingWords(const words::Table& table, const std::vector<ShardingWord>& words, Node& recipe,
                           const ShardingOptions& options, const registry::Registry& registry,
                           core::Diagnostics& diagnostics)
    : words_(words),
      recipe_(recipe),
      diagnostics_(diagnostics),
      table_(table),
      options_(options),
      registry_(registry) {}

void SettingWords::sort() {
  for (const ShardingWord& word : words_) sort(word, table_.words, nullptr);
}

void SettingWords::sort(const ShardingWord& word, const std::vector<words::Word>& level, const words::Word* section) {
  const std::size_t dot = section != nullptr ? word.field.rfind('.') : std::string::npos;
  const words::Word* entry =
      words::find(level, dot == std::string::npos ? word.field : std::string_view(word.field).substr(dot + 1));
  if (entry != nullptr && !entry->inner.empty() && word.value.is_mapping()) {
    for (const Node::Entry& one : word.value.entries())
      sort({word.field + "." + one.key, word.written + "." + one.key, one.key_location, one.value, word.top,
            word.top_location},
           entry->inner, entry);
    return;
  }
  // What a section says of itself is for the keys that have no entry, unless it is for a value in place of the section.
  const auto says = [](const words::Word* one) { return one != nullptr && one->outcome.kind != Kind::kTaken; };
  if (entry == nullptr && says(section)) entry = section;
  if (entry == nullptr) return unknown(word, level);
  if (entry->inner.empty() || says(entry) || !entry->rule.empty()) return take(word, *entry);
  if (!asks_nothing(word.value)) must_be(word, "a mapping");
}

void SettingWords::take(const ShardingWord& word, const words::Word& entry) {
  const bool is_auto_default = is_auto(word.value) && entry.fallback;
  if (is_auto_default) {  // the Trainer's default, not DeepSpeed's
    const std::size_t dot = entry.path.rfind('.');
    if (written_at(entry.path.substr(0, dot), entry.path.substr(dot + 1))) return;
    Node value = *entry.fallback;
    value.set_location(word.value.location());
    return void(place(word, entry.path, std::move(value)));
  }
  const bool is_listed_null = word.value.is_null() && listed(word.field, word.value) != nullptr;
  if ((word.value.is_null() && !is_listed_null) || is_auto(word.value)) return;
  if (!entry.rule.empty()) return void(found_.emplace(word.field, &keep(word)));
  const words::Outcome* outcome = entry.values.empty() ? &entry.outcome : listed(word.field, word.value);
  if (outcome == nullptr) {
    std::vector<std::string> names = names_of(word.field);
    names.emplace_back("auto");
    return must_be(word, registry::enumerated(names, "or"));
  }
  switch (outcome->kind) {
    case Kind::kTaken:
    case Kind::kChanged: {
      Node value = outcome->value ? *outcome->value : as_written(word.value);
      value.set_location(word.value.location());
      place(word, entry.path, std::move(value));
      return;
    }
    case Kind::kNoEffect: return leave(word);
    case Kind::kPlanned:
    case Kind::kRefused:
      if (!asks_nothing(word.value)) missing(word, outcome->text, outcome->instead, outcome->is_fatal);
      return;
  }
}

const words::Word* SettingWords::entry_of(const std::string& field) const {
  const std::vector<words::Word>* level = &table_.words;
  std::string_view rest = field;
  for (std::size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
    const words::Word* section = words::find(*level, rest.substr(0, dot));
    if (section == nullptr) return nullptr;
    level = &section->inner;
    rest.remove_prefix(dot + 1);
  }
  return words::find(*level, rest);
}

const words::Outcome* SettingWords::listed(const std::string& field, const Node& value) const {
  const words::Word* entry = entry_of(field);
  if (entry == nullptr) return nullptr;
  std::string text = lower(value.is_sequence() || value.is_mapping() ? "" : value.scalar_text());
  if (const auto number = number_of(value)) {
    text = number_node(*number, {}).scalar_text();
  } else if (const auto flag = flag_of(value)) {
    text = *flag ? "true" : "false";
  } else {
    text.erase(0, text.rfind('.') + 1);
    if (text.starts_with('_')) text.erase(0, 1);
  }
  return words::listed(*entry, text);
}

std::vector<std::string> SettingWords::names_of(const std::string& field) const {
  std::vector<std::string> names;
  const words::Word* entry = entry_of(field);
  if (entry == nullptr) return names;
  for (const auto& [name, outcome] : entry->values) {
    if (name != "null") names.push_back(name);
  }
  return names;
}

void SettingWords::unknown(const ShardingWord& word, const std::vector<words::Word>& level) {
  const std::string section = word.field.substr(0, word.field.rfind('.') + 1);
  std::vector<std::string> names;
  for (const words::Word& entry : level) names.push_back(section + entry.key);
  const std::string field = core::closest(word.field, names), near = field.substr(field.rfind('.') + 1);
  diagnostics_.error(word.key_location, word.written + " is not a key of " + table_.tool + " that roux knows",
                     near.empty() ? core::Hint("remove it if training does not depend on it")
                                  : core::Hint("did you mean " + near + "?", near));
}

void SettingWords::missing(const ShardingWord& word, const std::string& why, const std::string& hint, bool is_fatal) {
  const std::string value = word.value.is_mapping() || word.value.is_sequence() ? "" : ": " + shown(word.value);
  diagnostics_.add({is_fatal ? core::Severity::kError : options_.missing, word.key_location,
                    word.written + value + " has no equivalent" + (why.empty() ? "" : ": " + why), hint});
}

void SettingWords::must_be_named(const ShardingWord& word, const std::string& field, const std::string& before) {
  const std::vector<std::string> names = names_of(field);
  const std::string near = word.value.is_string() ? core::closest(word.value.as_string(), names) : "";
  must_be(word, before + registry::enumerated(names, "or"),
          core::Hint(near.empty() ? "" : "did you mean " + near + "?", near));
}

void SettingWords::must_be(const ShardingWord& word, const std::string& what, core::Hint hint) {
  diagnostics_.error(word.value.location(), word.written + " must be " + what + ", got " + described(word.value), hint);
}

const ShardingWord& SettingWords::keep(const ShardingWord& word) {
  return *kept_.emplace_back(std::make_unique<ShardingWord>(word));
}

const ShardingWord* SettingWords::read(const std::string& name) const {
  const auto found = found_.find(name);
  return found == found_.end() ? nullptr : found->second;
}

std::optional<Node::Entry> SettingWords::written_at(const std::string& section, const std::string& key) const {
  const Node* block = section.empty() ? &recipe_ : recipe_.at_path(section);
  if (block == nullptr) return std::nullopt;
  if (block->is_null()) {  // an override that takes the section away does so with what words would put into it
    const std::size_t dot = section.rfind('.');
    return dot == std::string::npos ? written_at("", section)
                                    : written_at(section.substr(0, dot), section.substr(dot + 1));
  }
  Node whole = *block;
  registry::expand_short_form(whole, section, registry_);
  const Node::Entry* entry = whole.find_entry(key);
  if (entry == nullptr || is_auto(entry->value)) return std::nullopt;
  // Null is a value where an override says it.
  return entry->value.is_null() && !is_override(*entry) ? std::nullopt : std::optional(*entry);
}

bool SettingWords::place(const ShardingWord& word, const std::string& path, Node value) {
  const std::size_t dot = path.rfind('.');
  const std::string section = dot == std::string::npos ? "" : path.substr(0, dot), key = path.substr(dot + 1);
  auto other = written_at(section, key);
  if (other && options_.replaces_defaults && !other->value.location().known()) other.reset();
  if (other && is_same(other->value, value)) {
    note(path, value);
    return true;
  }
  const bool overrides = is_override({word.written, word.key_location, word.value});
  if (other && is_override(*other) != overrides) {
    if (is_override(*other)) return true;
  } else if (other) {
    const auto origin = origins_.find(path);
    const Location& at = other->key_location.known() ? other->key_location : other->value.location();
    const std::string what = origin == origins_.end() ? path : origin->second;
    diagnostics_.error(word.key_location,
                       word.written + ": " + shown(word.value) + " is " + path + ": " + shown(value) + ", but " + what +
                           " (" + line_beside(at, word.key_location) + ") is " + shown(other->value),
                       "keep one of the two");
    return false;
  }
  note(path, value);
  origins_.emplace(path, path + " by " + word.written);
  if (value.is_null() && !other) return true;
  value.add_history("alias " + word.written);
  registry::put_setting(recipe_, path, std::move(value), word.key_location, registry_);
  return true;
}

void SettingWords::note(const std::string& path, const Node& value) {
  const std::string text = path + ": " + shown(value);
  if (std::find(read_as_.begin(), read_as_.end(), text) == read_as_.end()) read_as_.push_back(text);
}

void SettingWords::tell() {
  if (options_.tells && !read_as_.empty() && !words_.empty()) {
    diagnostics_.notice(words_.front().top_location, words_.front().top + " is read as " + core::joined(read_as_));
  }
  if (idle_.empty()) return;
  std::vector<std::string> names;
  for (const ShardingWord& word : idle_) names.push_back(word.field.substr(word.field.rfind('.') + 1));
  diagnostics_.notice(idle_.front().key_location,
                      core::joined(names) + (names.size() == 1 ? " has" : " have") + " no effect",
                      std::string("`roux config options` says what roux does with each field of ") + table_.tool);
}

void SettingWords::place_shard(const ShardingWord& word, const char* shard) {
  place(word, "parallelism.shard", Node::string(shard, word.value.location()));
}

void SettingWords::leave(const ShardingWord& word) {
  if (!asks_nothing(word.value)) idle_.push_back(keep(word));
}

bool SettingWords::gathers_model() const {
  const auto unit = written_at("parallelism", "unit");
  return unit && unit->value.is_string() && unit->value.as_string() == "model";
}

bool SettingWords::gathers_parameters() const {
  const auto shard = written_at("parallelism", "shard");
  return shard && shard->value.is_string() && shard->value.as_string() == "parameters";
}

bool SettingWords::shards() const {
  const auto shard = written_at("parallelism", "shard");
  return shard && !shard->value.is_null();
}

bool SettingWords::is_off(const std::string& key) const {
  const auto flag = written_at("parallelism", key);
  return flag && flag->value.is_bool() && !flag->value.as_bool();
}

}  // namespace runner::resolve
