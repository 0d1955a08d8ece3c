#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "components/tokenizer/same_tokens.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/language/name_map.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/resolve/rules/rules.h"

namespace runner::resolve {
namespace {

namespace fs = std::filesystem;

using components::tokenizer::Tokenizer;
using core::Diagnostics;
using core::Node;

/// What the rows of the vocabulary are called by roux, and in folders of Transformers.
constexpr std::array kEmbeddings = {"wte.weight", "model.embed_tokens.weight", "transformer.wte.weight"};
/// The same of a layer, as PEFT names those that it saves whole.
constexpr std::array kEmbeddingLayers = {"embed_tokens", "wte"};

std::vector<std::string> texts_of(const Node* list) {
  std::vector<std::string> texts;
  if (list != nullptr && list->is_string()) texts.push_back(list->as_string());
  if (list == nullptr || !list->is_sequence()) return texts;
  for (const Node& item : list->items()) {
    if (item.is_string()) texts.push_back(item.as_string());
  }
  return texts;
}

bool names_embedding(const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [](const std::string& pattern) {
    return std::any_of(kEmbeddings.begin(), kEmbeddings.end(),
                       [&](const char* name) { return core::matches_wildcard(pattern, name); });
  });
}

/// Whether the recipe leaves the rows of the vocabulary as they are drawn.
bool draws_embedding(const Node& recipe) {
  const auto include = texts_of(recipe.at_path("init_from.include"));
  return names_embedding(texts_of(recipe.at_path("init_from.exclude"))) ||
         (!include.empty() && !names_embedding(include));
}

/// Whether an adapter replaces those rows whole: they were trained with its tokenizer.
bool replaces_embedding(const Node& recipe) {
  const Node* adapters = recipe.find("adapters");
  if (adapters == nullptr || !adapters->is_sequence()) return false;
  return std::any_of(adapters->items().begin(), adapters->items().end(), [](const Node& adapter) {
    const Node* path = adapter.is_mapping() ? adapter.find("path") : nullptr;
    if (path == nullptr || !path->is_string()) return false;
    const auto layers = texts_of(adapter.find("modules_to_save"));
    return std::any_of(layers.begin(), layers.end(), [](const std::string& layer) {
      return std::find(kEmbeddingLayers.begin(), kEmbeddingLayers.end(), layer.substr(layer.rfind('.') + 1)) !=
             kEmbeddingLayers.end();
    });
  });
}

/// The blocks of all tokenizers that make ids of the recipe's texts.
std::vector<const Node*> tokenizers_of(const Node& recipe) {
  std::vector<const Node*> blocks;
  const auto add = [&blocks](const Node& owner) {
    const Node* block = owner.find("tokenizer");
    if (block != nullptr && block->is_mapping()) blocks.push_back(block);
  };
  add(recipe);
  const auto add_set = [&](const auto& self, const Node& set) -> void {
    if (!set.is_mapping()) return;
    add(set);
    if (const Node* sets = set.find("sets"); sets != nullptr && sets->is_sequence()) {
      for (const Node& one : sets->items()) self(self, one);
    }
    if (const Node* of = set.find("of")) self(self, *of);
  };
  if (const Node* data = recipe.find("data"); data != nullptr && data->is_mapping()) {
    for (const Node::Entry& set : data->entries()) add_set(add_set, set.value);
  }
  return blocks;
}

std::string folder_of(const std::string& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) return path;
  const std::string parent = fs::path(path).parent_path().string();
  return fs::is_regular_file(path, failed) ? (parent.empty() ? "." : parent) : "";
}

/// Whether `path` is read from the folder as the folder's own tokenizer is.
bool is_own(const std::string& path, const std::string& folder) {
  std::error_code failed;
  const std::string own = folder_of(path);
  if (own.empty() || !fs::equivalent(own, folder, failed)) return false;
  return fs::is_directory(path, failed) || fs::path(path).filename() == "tokenizer.json";
}

/// Compares the recipe's tokenizers with the folder's.
void compare(const Node& recipe, const std::string& folder, Diagnostics& diagnostics) {
  std::shared_ptr<const Tokenizer> there;
  for (const Node* block : tokenizers_of(recipe)) {
    const Node* path = block->find("path");
    if (path == nullptr || !path->is_string() || is_own(path->as_string(), folder)) continue;
    const auto here = components::tokenizer::read_tokenizer(path->as_string());
    if (!here) continue;  // what is wrong is said where it is used
    if (there == nullptr) {
      const auto read = components::tokenizer::read_tokenizer(folder);
      if (!read) {
        return diagnostics.warning(path->location(),
                                   "cannot compare the tokenizer with that of the weights: " + read.failure().message);
      }
      there = read.value();
    }
    const std::string other = components::tokenizer::other_token(*here.value(), path->as_string(), *there, "theirs");
    if (other.empty()) continue;
    diagnostics.error(
        path->location(), "the tokenizer is not that of the weights in " + folder + ": " + other,
        "name weights that were trained with this tokenizer, or write tokenizer: {type: file, path: " + folder + "}");
  }
}

}  // namespace

void check_tokenizers(const Node& recipe, const std::string& weights, Diagnostics& diagnostics) {
  const std::string folder = folder_of(weights);
  if (folder.empty() || !pretrained::has_tokenizer(folder) || replaces_embedding(recipe)) return;
  compare(recipe, folder, diagnostics);
}

void weight_tokenizers(SettledTree& tree) {
  const Node& recipe = tree.root();
  // A recipe that was recorded has all keys: its training has taken the weights.
  const auto is_recorded = [&tree] {
    return tree.written("init_from.strict") && tree.written("init_from.resize_vocab") &&
           tree.written("init_from.include") && tree.written("init_from.exclude");
  };
  const auto source = tree.text("init_from.path");
  if (source && !is_recorded() && !draws_embedding(recipe) && !replaces_embedding(recipe)) {
    const std::string folder = folder_of(*source);
    if (!folder.empty() && pretrained::has_tokenizer(folder)) {
      compare(recipe, folder, tree.diagnostics());
    }
  }
  const Node* adapters = recipe.find("adapters");
  if (adapters == nullptr || !adapters->is_sequence()) return;
  for (const Node& adapter : adapters->items()) {
    const Node* path = adapter.is_mapping() ? adapter.find("path") : nullptr;
    if (path == nullptr || !path->is_string() || !pretrained::has_tokenizer(path->as_string())) continue;
    compare(recipe, path->as_string(), tree.diagnostics());
  }
}

}  // namespace runner::resolve
