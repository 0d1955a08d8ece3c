#include "runner/resolve/sharding/words.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/recipe/read.h"
#include "runner/registry/wording.h"
#include "runner/resolve/sharding/settings.h"

namespace runner::resolve {
namespace {

using core::lower;
using core::Node;

std::string without_prefix(const std::string& key) { return key.starts_with("fsdp_") ? key.substr(5) : key; }

/// The file as written, or beside the file that names it; nothing after an error.
std::optional<Node> read_json_file(const std::string& written, const Node& path, core::Severity absent,
                                   core::Diagnostics& diagnostics) {
  const std::string name = path_beside(path);
  const recipe::Limits limits;
  auto text = core::read_file(name, limits.file_bytes_max);
  if (!text) {
    const std::string left_out = absent == core::Severity::kError ? "" : "; what it says is left out";
    diagnostics.add({absent, path.location(), written + ": " + text.failure().message + left_out,
                     "put the file there, or beside the file that names it"});
    return std::nullopt;
  }
  const auto file =
      std::make_shared<const core::Source>(core::Source{name, std::move(text).value(), core::Source::Kind::kFile});
  auto root = recipe::read_json(file, limits, diagnostics);
  if (root && !root->is_mapping()) {
    diagnostics.error(root->location(), name + " must be a mapping, got " + registry::described(*root));
    return std::nullopt;
  }
  return root;
}

void add_entries(const Node& block, const std::string& prefix, std::vector<ShardingWord>& words) {
  for (const Node::Entry& entry : block.entries())
    words.push_back(
        {entry.key, prefix.empty() ? entry.key : prefix + "." + entry.key, entry.key_location, entry.value});
}

/// `type` is the path of a file that this one extends, under the mapping of this one.
bool names_file(const std::string& field) {
  return field == "deepspeed_config_file" || field == "hf_ds_config" || field == "config_file" || field == "type";
}

/// Replaces words that name a file by what it says.
void read_files(std::vector<ShardingWord>& words, core::Severity absent, core::Diagnostics& diagnostics) {
  std::vector<ShardingWord> all;
  for (ShardingWord& word : words) {
    if (!names_file(word.field)) {
      all.push_back(std::move(word));
    } else if (word.value.is_mapping()) {
      add_entries(word.value, word.written, all);
    } else if (!asks_nothing(word.value)) {
      if (const auto root = read_json_file(word.written, word.value, absent, diagnostics)) add_entries(*root, "", all);
    }
  }
  words = std::move(all);
}

/// Says of all which key of the file they are of.
void set_top(const Node::Entry& entry, std::vector<ShardingWord>& words) {
  for (ShardingWord& word : words) {
    word.top = entry.key;
    word.top_location = entry.key_location;
  }
}

}  // namespace

std::vector<ShardingWord> fsdp_words(const Node::Entry& entry, core::Diagnostics& diagnostics, core::Severity absent) {
  std::vector<ShardingWord> words;
  const auto add = [&](std::string field, const std::string& written, Node value) {
    words.push_back({std::move(field), written, entry.key_location, std::move(value)});
  };
  const auto add_all = [&](const Node& block) {
    for (const Node::Entry& one : block.entries()) {
      // A text of a file that this one extends, under the mapping of this one.
      if (one.key == "type") {
        for (ShardingWord& word : fsdp_words({entry.key, one.key_location, one.value}, diagnostics, absent))
          words.push_back(std::move(word));
        continue;
      }
      words.push_back({lower(without_prefix(one.key)), entry.key + "." + one.key, one.key_location, one.value});
    }
  };
  const Node& value = entry.value;
  if (is_fsdp_word(entry.key) && entry.key != "fsdp_config") {
    add(without_prefix(entry.key), entry.key, value);
  } else if (value.is_mapping()) {
    add_all(value);
    if (value.entries().empty() && entry.key == "fsdp") add("version", entry.key, Node::null(value.location()));
  } else if (entry.key == "fsdp_config" && (!asks_nothing(value) || value.is_sequence())) {
    if (value.is_string() && value.as_string().ends_with(".json")) {
      if (const auto root = read_json_file(entry.key, value, absent, diagnostics)) add_all(*root);
    } else {
      diagnostics.error(
          value.location(),
          "fsdp_config must be a mapping or the path of a JSON file, got " + registry::described(value),
          "write fsdp_config: {fsdp_sharding_strategy: FULL_SHARD}; names alone stand in fsdp: full_shard");
    }
  } else if (value.is_bool() && value.as_bool()) {
    add("version", entry.key, Node::null(value.location()));
  } else if (!asks_nothing(value)) {
    std::vector<std::string> parts;
    if (value.is_sequence()) {
      for (const Node& item : value.items()) parts.push_back(item.scalar_text());
    } else {
      std::string text = value.scalar_text() + " ";
      std::replace(text.begin(), text.end(), ',', ' ');
      for (std::size_t begin = 0, end = text.find(' '); end != std::string::npos;
           begin = end + 1, end = text.find(' ', begin)) {
        if (end > begin) parts.push_back(text.substr(begin, end - begin));
      }
    }
    for (const std::string& part : parts) {
      const std::string word = lower(part);
      if (word == "auto_wrap") {
        add("auto_wrap_policy", entry.key + ".auto_wrap", Node::boolean(true, value.location()));
      } else if (word == "offload") {
        add("offload_params", entry.key + ".offload", Node::boolean(true, value.location()));
      } else {
        add("sharding_strategy", entry.key, Node::string(part, value.location()));
      }
    }
  }
  set_top(entry, words);
  return words;
}

std::vector<ShardingWord> deepspeed_words(const Node::Entry& entry, core::Diagnostics& diagnostics,
                                          core::Severity absent) {
  std::vector<ShardingWord> words;
  if (is_deepspeed_word(entry.key) && entry.key != "deepspeed_config") {
    words.push_back({entry.key, entry.key, entry.key_location, entry.value});
  } else if (entry.value.is_mapping()) {
    add_entries(entry.value, entry.key, words);
  } else if (entry.value.is_string() && !asks_nothing(entry.value)) {
    words.push_back({"config_file", entry.key, entry.key_location, entry.value});
  } else if (!asks_nothing(entry.value) || entry.value.is_sequence()) {
    diagnostics.error(
        entry.value.location(),
        entry.key + " must be a mapping or the path of a JSON file, got " + registry::described(entry.value),
        "write " + entry.key + ": {zero_stage: 2}, or parallelism: {shard: gradients}");
  }
  read_files(words, absent, diagnostics);
  set_top(entry, words);
  return words;
}

bool asks_nothing(const Node& value) {
  if (value.is_null() || (value.is_bool() && !value.as_bool())) return true;
  if (value.is_sequence()) return value.items().empty();
  if (value.is_mapping()) {
    for (const char* key : {"device", "enabled"}) {
      if (const Node* says = value.find(key)) return asks_nothing(*says);
    }
    return std::all_of(value.entries().begin(), value.entries().end(),
                       [](const Node::Entry& entry) { return asks_nothing(entry.value); });
  }
  const std::string text = value.is_string() ? lower(value.as_string()) : "";
  return value.is_string() && (text.empty() || text == "no" || text == "none" || text == "false" || text == "auto");
}

std::string path_beside(const Node& path) {
  namespace fs = std::filesystem;
  std::string name = path.scalar_text();
  std::error_code failed;
  const auto& source = path.location().source;
  if (!fs::exists(name, failed) && source != nullptr && source->kind == core::Source::Kind::kFile) {
    const fs::path folder = fs::path(source->name).parent_path();
    for (const fs::path& beside : {folder / name, folder / fs::path(name).filename()}) {
      if (fs::exists(beside, failed)) return beside.string();
    }
  }
  return name;
}

bool is_fsdp_word(const std::string& key) { return key.starts_with("fsdp_") || key == "sharding_strategy"; }

bool is_deepspeed_word(const std::string& key) {
  static constexpr const char* kBare[] = {
      "zero_stage",           "zero_optimization",           "deepspeed_config",
      "zero3_init_flag",      "zero3_save_16bit_model",      "offload_optimizer_device",
      "offload_param_device", "offload_optimizer_nvme_path", "offload_param_nvme_path"};
  return key.starts_with("deepspeed_") ||
         std::any_of(std::begin(kBare), std::end(kBare), [&](const char* bare) { return key == bare; });
}

void take_sharding_words(Node& recipe, const registry::Registry& registry, core::Diagnostics& diagnostics) {
  std::vector<ShardingWord> fsdp, deepspeed;
  const auto take_from = [&](Node& block) {
    std::vector<std::string> taken;
    // `fsdp: ""` of the Trainer is off, whatever fsdp_config says.
    const Node* trainer = block.find("fsdp");
    const bool is_without = trainer != nullptr && !trainer->is_mapping() && asks_nothing(*trainer);
    for (const Node::Entry& entry : block.entries()) {
      std::vector<ShardingWord>* words = nullptr;
      if (entry.key == "fsdp" || is_fsdp_word(entry.key)) words = &fsdp;
      if (entry.key == "deepspeed" || is_deepspeed_word(entry.key)) words = &deepspeed;
      if (words == nullptr) continue;
      taken.push_back(entry.key);
      if (words == &fsdp && is_without) continue;
      const auto found = words == &fsdp ? fsdp_words(entry, diagnostics) : deepspeed_words(entry, diagnostics);
      words->insert(words->end(), found.begin(), found.end());
    }
    for (const std::string& key : taken) block.erase(key);
  };
  if (!recipe.is_mapping()) return;
  take_from(recipe);
  if (Node* training = recipe.find("training"); training != nullptr && training->is_mapping()) take_from(*training);
  if (!fsdp.empty()) apply_fsdp(fsdp, recipe, {}, registry, diagnostics);
  if (!deepspeed.empty()) apply_deepspeed(deepspeed, recipe, {}, registry, diagnostics);
}

}  // namespace runner::resolve
