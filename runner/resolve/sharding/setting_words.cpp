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
using Use = ShardingField::Use;

namespace {

constexpr const char* kWarmup = "scheduler.params.warmup_num_steps";

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

SettingWords::SettingWords(const std::vector<ShardingWord>& words, Node& recipe, const ShardingOptions& options,
                           const registry::Registry& registry, core::Diagnostics& diagnostics)
    : words_(words), recipe_(recipe), diagnostics_(diagnostics), options_(options), registry_(registry) {}

void SettingWords::sort(const ShardingWord& word, Tables tables, const char* framework) {
  const ShardingField* field = nullptr;
  bool is_section = false;
  std::vector<std::string> names;
  for (const auto& table : tables) {
    if (field == nullptr) field = find_field(table, word.field);
    for (const ShardingField& one : table) {
      is_section = is_section || std::string_view(one.name).starts_with(word.field + ".");
      const std::string_view name = one.name;
      for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
        names.emplace_back(name.substr(0, dot));  // a section
      names.emplace_back(name);
    }
  }
  if (is_section && word.value.is_mapping()) {
    for (const Node::Entry& entry : word.value.entries())
      sort({word.field + "." + entry.key, word.written + "." + entry.key, entry.key_location, entry.value, word.top,
            word.top_location},
           tables, framework);
    return;
  }
  // A row of a section is for the keys that have none, unless it is for a plain value in place of the section.
  const std::size_t dot = word.field.rfind('.');
  for (const auto& table : tables) {
    if (field == nullptr && dot != std::string::npos) field = find_field(table, word.field.substr(0, dot));
    if (field != nullptr && field->name != word.field && field->use == Use::kRead) field = nullptr;
  }
  if (field == nullptr && is_section && !asks_nothing(word.value)) return must_be(word, "a mapping");
  if (field == nullptr) return unknown(word, names, framework, is_section);
  take(word, *field);
}

void SettingWords::take(const ShardingWord& word, const ShardingField& field) {
  if (is_auto(word.value) && word.field == kWarmup && !written_at("lr_scheduler", "warmup_steps")) {
    place(word, field.key, Node::integer(0, word.value.location()));  // the Trainer's default, not DeepSpeed's
    return;
  }
  // FSDP prefetches nothing where it is null.
  const bool is_none = word.value.is_null() && std::string_view(field.name).starts_with("backward_prefetch");
  if ((word.value.is_null() && !is_none) || is_auto(word.value)) return;
  switch (field.use) {
    case Use::kCopied: place(word, field.key, as_written(word.value)); return;
    case Use::kRead: found_.emplace(field.name, &keep(word)); return;
    case Use::kNoEffect:
      if (!asks_nothing(word.value)) idle_.push_back(keep(word));
      return;
    case Use::kRefused:
      if (!asks_nothing(word.value)) missing(word, field.note);
      return;
  }
}

void SettingWords::unknown(const ShardingWord& word, const std::vector<std::string>& names, const char* framework,
                           bool is_section) {
  if (is_section) return;
  const std::string section = word.field.substr(0, word.field.rfind('.') + 1);
  std::vector<std::string> beside;
  for (const std::string& name : names) {
    if (name.starts_with(section)) beside.push_back(name);
  }
  const std::string field = core::closest(word.field, beside), near = field.substr(field.rfind('.') + 1);
  diagnostics_.error(word.key_location, word.written + " is not a key of " + framework + " that roux knows",
                     near.empty() ? core::Hint("remove it if training does not depend on it")
                                  : core::Hint("did you mean " + near + "?", near));
}

void SettingWords::missing(const ShardingWord& word, const std::string& hint) {
  const std::string value = word.value.is_mapping() || word.value.is_sequence() ? "" : ": " + shown(word.value);
  diagnostics_.add({options_.missing, word.key_location, word.written + value + " has no equivalent", hint});
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

void SettingWords::tell(const char* framework) {
  if (options_.tells && !read_as_.empty() && !words_.empty()) {
    diagnostics_.notice(words_.front().top_location, words_.front().top + " is read as " + core::joined(read_as_));
  }
  if (idle_.empty()) return;
  std::vector<std::string> names;
  for (const ShardingWord& word : idle_) names.push_back(word.field.substr(word.field.rfind('.') + 1));
  diagnostics_.notice(idle_.front().key_location,
                      core::joined(names) + (names.size() == 1 ? " has" : " have") + " no effect",
                      std::string("`roux config options` says what roux does with each field of ") + framework);
}

void SettingWords::place_shard(const ShardingWord& word, const char* shard) {
  const Location& at = word.value.location();
  place(word, "parallelism.shard", shard == nullptr ? Node::null(at) : Node::string(shard, at));
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
