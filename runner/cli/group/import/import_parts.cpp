#include "runner/cli/group/import/import_parts.h"

#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/cache.h"
#include "runner/hub/name.h"
#include "runner/hub/settings.h"
#include "runner/registry/alias.h"
#include "runner/registry/reference/lookup.h"
#include "runner/registry/registry.h"
#include "runner/resolve/sharding/settings.h"
#include "runner/resolve/sharding/words.h"
#include "runner/words/draft.h"

namespace runner::cli {
namespace {

using core::Node;
using words::asks_for_something;
using Kind = words::Outcome::Kind;

/// `a number` or `true or false`, of a key that holds one; "" of any other.
std::string number_of(const std::string& path, const Node& recipe) {
  if (path.empty()) return "";
  using Type = registry::Property::Type;
  const auto schema = registry::find_schema(registry::Registry::builtin(), recipe, registry::shown_path(path));
  if (schema.property == nullptr) return "";
  switch (schema.property->type) {
    case Type::kInteger:
    case Type::kNumber:
    case Type::kInterval:
    case Type::kDuration:
    case Type::kBytes: return "a number";
    case Type::kBoolean: return "true or false";
    default: return "";
  }
}

/// Of one block of a configuration.
class EmptyNumbers {
 public:
  EmptyNumbers(const Node& recipe, std::vector<words::Row>& rows, core::Diagnostics& diagnostics)
      : recipe_(recipe), rows_(rows), diagnostics_(diagnostics) {}

  void refuse(const Node& block, const std::vector<words::Word>& words, const std::string& prefix) {
    for (const Node::Entry& entry : block.entries()) {
      const words::Word* word = words::find(words, entry.key);
      if (word == nullptr || (!entry.value.is_mapping() && !entry.value.is_sequence())) continue;
      const std::string key = prefix + entry.key;
      if (!word->inner.empty()) {
        if (entry.value.is_mapping()) refuse(entry.value, word->inner, key + ".");
        for (std::size_t i = 0; i < entry.value.items().size(); ++i)
          refuse(entry.value.items()[i], word->inner, key + "[" + std::to_string(i) + "].");
      } else if (entry.value.entries().empty() && entry.value.items().empty()) {
        refuse(entry, *word, key);
      }
    }
  }

 private:
  void refuse(const Node::Entry& entry, const words::Word& word, const std::string& key) {
    const std::string expected = number_of(word.path, recipe_);
    if (expected.empty()) return;
    const std::string message =
        key + " must be " + expected + ", got an empty " + (entry.value.is_mapping() ? "mapping" : "list");
    diagnostics_.error(entry.value.location(), message, "write a value, or remove it");
    std::erase_if(rows_, [&](const words::Row& row) { return row.key == key; });
    rows_.push_back({words::Outcome::Kind::kRefused, key, "", message, entry.key_location, {}});
  }

  const Node& recipe_;
  std::vector<words::Row>& rows_;
  core::Diagnostics& diagnostics_;
};

/// Of a file that is not here, or says nothing.
void note_left_out(const Node::Entry& entry, std::vector<words::Row>& rows) {
  for (words::Row& row : rows) {
    if (row.key != entry.key && !row.key.ends_with("." + entry.key)) continue;
    row.kind = words::Outcome::Kind::kNoEffect;
    row.text = "the file is not here, and what it says is left out";
  }
}

/// A folder of the disk, or of the Hub's cache; as it is named where it is in neither.
std::string found_folder(const std::string& folder) {
  const auto name = hub::parse_name(words::model_path(folder));
  const auto settings = hub::read_settings();
  const auto located = name && settings ? hub::locate(name.value(), settings.value()) : std::nullopt;
  return located ? located->path : folder;
}

/// "" where the folder has none. Nothing where it cannot be read.
std::optional<std::string> token_of_folder(const std::string& folder, const char* name) {
  constexpr std::size_t kBytesMax = 16U << 20U;
  bool is_read = false;
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto text = core::read_file(folder + "/" + file, kBytesMax);
    if (!text) continue;
    const auto config = core::parse_json(text.value());
    if (!config || !config.value().is_mapping()) continue;
    is_read = true;
    const Node* token = config.value().find(name);
    if (token != nullptr && token->is_mapping()) token = token->find("content");
    if (token != nullptr && token->is_string()) return token->as_string();
  }
  return is_read ? std::optional(std::string()) : std::nullopt;
}

}  // namespace

void compare_token(words::Reader& reader, const Node& token, const std::string& key, const char* name,
                   const std::string& folder) {
  const auto own = token_of_folder(found_folder(folder), name);
  if (!own) {
    reader.note(key, Kind::kChanged, "the one of the tokenizer's folder counts: check that it is this one");
  } else if (*own == token.scalar_text()) {
    reader.note(key, Kind::kNoEffect, "the tokenizer's folder has the same");
  } else {
    reader.refuse(token, key,
                  key + " is " + core::quote(token.scalar_text()) + ", and " +
                      (own->empty() ? "none" : core::quote(*own)) + " in the tokenizer's folder, which counts",
                  "write it into tokenizer_config.json of a copy of the folder, and name the copy");
  }
}

void keep_switches(const Node& config, const words::Table& table, Node& recipe, std::vector<words::Row>& rows) {
  const auto& components = registry::Registry::builtin();
  for (const Node::Entry& entry : config.entries()) {
    const words::Word* word = words::find(table.words, entry.key);
    const bool is_off = entry.value.is_bool() && !entry.value.as_bool();
    if (word == nullptr || !is_off || !word->rule.empty() || !word->needs.empty() || !word->when.empty()) continue;
    if (word->path.empty() || word->path.find('[') != std::string::npos) continue;
    if (words::listed(*word, "false") != nullptr || recipe.at_path(word->path) != nullptr) continue;
    const auto* property = registry::find_schema(components, recipe, word->path).property;
    if (property == nullptr || property->type != registry::Property::Type::kBoolean) continue;
    const auto& usual = property->default_value;
    if (usual && usual->is_bool() && !usual->as_bool()) continue;
    registry::put_setting(recipe, word->path, entry.value, entry.key_location, components);
    for (words::Row& row : rows) {
      if (row.key != entry.key) continue;
      row.kind = words::Outcome::Kind::kTaken;
      row.text = word->path;
      row.asks = true;
    }
  }
}

void refuse_stream_of_labels(words::Reader& reader, const Node& at, const std::string& key) {
  reader.refuse(at, key, key + " reads a stream, and KTO compares each record with another one of the set",
                "remove " + key + ": the records are read into memory");
}

void refuse_empty_numbers(const Node& config, const words::Table& table, const Node& recipe,
                          std::vector<words::Row>& rows, core::Diagnostics& diagnostics) {
  EmptyNumbers(recipe, rows, diagnostics).refuse(config, table.words, "");
}

void take_sharding(const Node& config, Node& recipe, std::vector<words::Row>& rows, core::Diagnostics& diagnostics) {
  std::vector<resolve::ShardingWord> fsdp, deepspeed;
  const Node* text = config.find("fsdp");
  const bool is_without = text != nullptr && !asks_for_something(*text);  // whatever fsdp_config says
  for (const Node::Entry& entry : config.entries()) {
    const bool is_fsdp_list = entry.key == "fsdp" && entry.value.is_sequence();
    if (!asks_for_something(entry.value) && (!entry.value.is_sequence() || is_fsdp_list)) continue;
    if (entry.key == "deepspeed") {
      deepspeed = resolve::deepspeed_words(entry, diagnostics, core::Severity::kWarning);
      if (deepspeed.empty() && entry.value.is_string()) note_left_out(entry, rows);
    }
    if (is_without || (entry.key != "fsdp" && entry.key != "fsdp_config")) continue;
    auto found = resolve::fsdp_words(entry, diagnostics, core::Severity::kWarning);
    if (found.empty() && entry.value.is_string() && entry.key == "fsdp_config") note_left_out(entry, rows);
    std::move(found.begin(), found.end(), std::back_inserter(fsdp));
  }
  for (const resolve::ShardingWord& word : deepspeed) {
    if (word.field != "scheduler" || word.value.find("type") == nullptr) continue;
    const Node* steps = recipe.at_path("lr_scheduler.warmup_steps");
    Node schedule = Node::mapping();
    if (steps != nullptr) schedule.set("warmup_steps", *steps);
    recipe.set("lr_scheduler", std::move(schedule));
  }
  const resolve::ShardingOptions options{
      .missing = core::Severity::kWarning, .tells = false, .replaces_defaults = true};
  const auto& components = registry::Registry::builtin();
  if (!fsdp.empty()) resolve::apply_fsdp(fsdp, recipe, options, components, diagnostics);
  if (!deepspeed.empty()) resolve::apply_deepspeed(deepspeed, recipe, options, components, diagnostics);
}

std::string percent_of(double part) {
  std::string text = core::to_json(Node::floating(std::round(1000 * part) / 10), -1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + "%";
}

Node joined_sets(std::vector<Node> sets, const SetMixture& mixture) {
  if (sets.size() == 1) return sets.front();
  Node all = Node::mapping();
  all.set("type", Node::string("concat"));
  if (!mixture.weights.empty() && mixture.weights.size() == sets.size()) {
    all.set("weights", Node::sequence(mixture.weights));
    all.set("stopping", Node::string(mixture.stopping));
  }
  all.set("sets", Node::sequence(std::move(sets)));
  return all;
}

}  // namespace runner::cli
