#include "runner/hub/data_card.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "runner/core/location.h"
#include "runner/core/node.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/name.h"
#include "runner/recipe/document.h"

namespace runner::hub {
namespace {

using core::Failure;
using core::Node;
using core::Result;

constexpr const char* kMark = "---";
constexpr const char* kForms = "data_files is a path, a list of paths, or a list of {split, path}";
/// A card describes the columns of each subset, of which there may be thousands.
constexpr recipe::Limits kLimits{.file_bytes_max = 16 << 20, .nodes_max = 2'000'000, .alias_nodes_max = 200'000};

/// What stands between the first line, `---`, and the next such line.
std::optional<std::string> front_matter(const std::string& card) {
  std::optional<std::string> text;
  for (std::size_t begin = 0; begin < card.size();) {
    const std::size_t end = std::min(card.find('\n', begin), card.size());
    std::string line = card.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    begin = end + 1;
    if (!text) {
      if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
      if (line != kMark) return std::nullopt;
      text.emplace();
    } else if (line == kMark) {
      return text;
    } else {
      *text += line + '\n';
    }
  }
  return std::nullopt;
}

bool is_scalar(const Node* value) {
  return value != nullptr && !value->is_null() && !value->is_sequence() && !value->is_mapping();
}

/// A path or pattern below the folder, as the listing writes its files.
Result<std::string> path_below(const std::string& folder, const std::string& written) {
  std::string path = written;
  while (path.starts_with("./")) path.erase(0, 2);
  while (path.ends_with('/')) path.pop_back();
  if (path == ".") path.clear();
  const std::string whole = folder.empty() || path.empty() ? folder + path : folder + "/" + path;
  if (!whole.empty() && (path.find("://") != std::string::npos || !is_safe_path(whole))) {
    return Failure{" names " + core::quote(written) + ", which is outside of the repository"};
  }
  return whole;
}

Result<std::vector<std::string>> patterns_of(const std::string& folder, const Node& written) {
  std::vector<Node> items = written.is_sequence() ? written.items() : std::vector{written};
  std::vector<std::string> patterns;
  for (const Node& item : items) {
    if (!is_scalar(&item)) return Failure{std::string(" has other data_files than it may: ") + kForms};
    auto path = path_below(folder, item.scalar_text());
    if (!path) return path.failure();
    patterns.push_back(std::move(path).value());
  }
  return patterns;
}

Result<void> add_files(const std::string& split, const Node& paths, CardSubset& subset) {
  auto patterns = patterns_of(subset.folder, paths);
  if (!patterns) return patterns.failure();
  subset.files.emplace_back(split, std::move(patterns).value());
  return {};
}

Result<void> read_files(const Node& written, CardSubset& subset) {
  if (written.is_mapping()) {
    for (const Node::Entry& entry : written.entries()) {
      if (const auto added = add_files(entry.key, entry.value, subset); !added) return added.failure();
    }
    return {};
  }
  const auto& items = written.items();
  const bool has_splits = std::any_of(items.begin(), items.end(), [](const Node& item) { return item.is_mapping(); });
  if (!has_splits) return add_files("train", written, subset);
  for (const Node& item : items) {
    const Node *split = item.is_mapping() ? item.find("split") : nullptr,
               *path = item.is_mapping() ? item.find("path") : nullptr;
    if (!is_scalar(split) || path == nullptr) {
      return Failure{std::string(" has other data_files than it may: ") + kForms};
    }
    if (const auto added = add_files(split->scalar_text(), *path, subset); !added) return added.failure();
  }
  return {};
}

Result<CardSubset> read_subset(const Node& config) {
  const Node* name = config.is_mapping() ? config.find("config_name") : nullptr;
  if (!is_scalar(name)) return Failure{" has an entry of configs without config_name"};
  CardSubset subset{.name = name->scalar_text()};
  const Node *is_default = config.find("default"), *folder = config.find("data_dir"),
             *files = config.find("data_files");
  subset.is_default = is_default != nullptr && is_default->is_bool() && is_default->as_bool();
  if (is_scalar(folder)) {
    auto path = path_below("", folder->scalar_text());
    if (!path) return path.failure();
    subset.folder = std::move(path).value();
  }
  if (files == nullptr || files->is_null()) return subset;
  if (const auto read = read_files(*files, subset); !read) return read.failure();
  return subset;
}

}  // namespace

Result<std::vector<CardSubset>> subsets_of_settings(const std::string& yaml) {
  core::Diagnostics diagnostics;
  const auto source = std::make_shared<core::Source>(core::Source{kCard, yaml, core::Source::Kind::kFile});
  const auto root = recipe::read_yaml_leniently(source, kLimits, diagnostics);
  if (!root) {
    const auto& all = diagnostics.all();
    return Failure{" is not YAML: " + (all.empty() ? "it has no value" : all.front().message)};
  }
  std::vector<CardSubset> subsets;
  const Node* configs = root->is_mapping() ? root->find("configs") : nullptr;
  if (configs == nullptr || configs->is_null()) return subsets;
  if (!configs->is_sequence()) return Failure{" has configs that are not a list"};
  for (const Node& config : configs->items()) {
    auto subset = read_subset(config);
    if (!subset) return subset.failure();
    subsets.push_back(std::move(subset).value());
  }
  return subsets;
}

Result<std::vector<CardSubset>> subsets_of_card(const std::string& card) {
  const auto yaml = front_matter(card);
  if (!yaml || yaml->find_first_not_of(" \t\n") == std::string::npos) return std::vector<CardSubset>();
  return subsets_of_settings(*yaml);
}

}  // namespace runner::hub
