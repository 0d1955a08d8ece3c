#include "runner/hub/model_files.h"

#include <algorithm>
#include <set>

#include "runner/core/json_entries.h"
#include "runner/hub/name.h"

namespace runner::hub {
namespace {

constexpr const char* kTokenizer[] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt",     "tokenizer.model",       "chat_template.jinja",     "chat_template.json"};
constexpr const char* kConfigurations[] = {"config.json", "generation_config.json", "adapter_config.json"};
/// The first one counts that a repository has.
constexpr const char* kWeights[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                    "pytorch_model.bin.index.json"};
constexpr const char* kWeightMap = "weight_map";
constexpr core::JsonLimits kIndexLimits{8, 10'000};
constexpr const char* kAdapter = "adapter_model.safetensors";

bool has(const std::vector<std::string>& files, const std::string& file) {
  return std::find(files.begin(), files.end(), file) != files.end();
}

std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/') + 1); }

}  // namespace

std::vector<std::string> optional_files(Part part) {
  std::vector<std::string> files(std::begin(kTokenizer), std::end(kTokenizer));
  if (part != Part::kTokenizer) files.insert(files.end(), std::begin(kConfigurations), std::end(kConfigurations));
  return files;
}

std::vector<std::string> files_of(Part part, const std::vector<std::string>& repository) {
  std::vector<std::string> files;
  for (const std::string& file : optional_files(part)) {
    if (has(repository, file)) files.push_back(file);
  }
  if (part != Part::kAll) return files;
  for (const char* file : kWeights) {
    if (!has(repository, file)) continue;
    files.emplace_back(file);
    break;
  }
  if (has(repository, kAdapter)) files.emplace_back(kAdapter);
  return files;
}

std::vector<std::string> beside_tokenizer(const std::string& file, const std::vector<std::string>& repository) {
  std::vector<std::string> files = {file};
  for (const char* other : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt",
                            "chat_template.jinja", "chat_template.json"}) {
    const std::string path = folder_of(file) + other;
    if (path != file && has(repository, path)) files.push_back(path);
  }
  return files;
}

bool is_index(std::string_view file) { return file.ends_with(".index.json"); }

std::optional<std::vector<std::string>> shards_of(const std::string& index_file, const std::string& content) {
  std::set<std::string> shards;
  bool is_safe = true;
  const auto take = [&](const std::string&, const core::Node& shard) {
    is_safe = is_safe && shard.is_string() && is_safe_path(shard.as_string());
    if (is_safe) shards.insert(folder_of(index_file) + shard.as_string());
  };
  const auto rest = core::parse_json_entries(content, kWeightMap, kIndexLimits, take);
  const core::Node* map = rest && rest.value().is_mapping() ? rest.value().find(kWeightMap) : nullptr;
  if (map == nullptr || !map->is_mapping() || !is_safe) return std::nullopt;
  return std::vector<std::string>(shards.begin(), shards.end());
}

}  // namespace runner::hub
