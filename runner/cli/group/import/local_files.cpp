#include "runner/cli/group/import/local_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/data_card.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::Failure;
using core::Node;
using core::Result;

constexpr std::size_t kFilesMax = 20'000;
constexpr std::size_t kCardBytesMax = 4U << 20U;
constexpr const char* kNameThem = "name the files of each set themselves";

/// The paths of files below a folder, sorted; hidden ones are none of a data set. Nothing for too many of them.
std::optional<std::vector<std::string>> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink, failed), end;
       !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    std::error_code unknown;
    const bool is_folder = at->is_directory(unknown);
    if (name.starts_with(".") || (is_folder && name.starts_with("__"))) {
      if (is_folder) at.disable_recursion_pending();
      continue;
    }
    if (!is_folder) files.push_back(at->path().lexically_relative(folder).generic_string());
    if (files.size() > kFilesMax) return std::nullopt;
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string quoted_names(std::vector<std::string> names) {
  for (std::string& name : names) name = core::quote(name);
  return core::joined_first(names, 6);
}

/// The subset of a name, or the default one.
Result<hub::DataSubset> subset_of(const std::string& folder, const std::string& name,
                                  std::vector<hub::DataSubset> subsets) {
  std::vector<std::string> names;
  for (hub::DataSubset& one : subsets) {
    if (name.empty() ? one.is_default : one.name == name) return std::move(one);
    names.push_back(one.name);
  }
  if (name.empty())
    return Failure{folder + " has several subsets, and none is named", "name one of " + quoted_names(names)};
  return Failure{folder + " has no subset " + core::quote(name), "it has " + quoted_names(names)};
}

/// `files` of a folder, by their paths from here.
Result<LocalFiles> read_files(const std::string& folder, const std::vector<std::string>& files, hub::DataKind kind) {
  if (!hub::reads("jsonl", kind) && !hub::reads("text", kind)) {
    return Failure{folder + " holds " + hub::words_of(kind) + ", which no data set of records reads",
                   "write their records into files of .jsonl, and name these"};
  }
  const std::string begin = folder.ends_with('/') ? folder : folder + "/";
  LocalFiles found{.paths = {}, .kind = kind};
  for (const std::string& file : files) found.paths.push_back(begin + file);
  return found;
}

}  // namespace

Node LocalFiles::node() const {
  if (paths.size() == 1) return Node::string(paths.front());
  Node list = Node::sequence();
  for (const std::string& path : paths) list.items().push_back(Node::string(path));
  return list;
}

Result<LocalFiles> files_of_split(const std::string& folder, const std::string& subset, const std::string& split) {
  const auto files = files_below(folder);
  if (!files) return Failure{folder + " holds more than " + std::to_string(kFilesMax) + " files", kNameThem};
  std::vector<hub::CardSubset> card;
  if (std::find(files->begin(), files->end(), hub::kCard) != files->end()) {
    const auto text = core::read_file(folder + "/" + hub::kCard, kCardBytesMax);
    if (!text) return text.failure();
    auto described = hub::subsets_of_card(text.value());
    if (!described) return Failure{folder + "/" + hub::kCard + described.failure().message, kNameThem};
    card = std::move(described).value();
  }
  auto subsets = hub::data_subsets(card, *files);
  if (!subsets) return Failure{folder + subsets.failure().message, kNameThem};
  const auto chosen = subset_of(folder, subset, std::move(subsets).value());
  if (!chosen) return chosen.failure();
  std::vector<std::string> names;
  for (const hub::DataSplit& one : chosen.value().splits) {
    if (one.name == split) return read_files(folder, one.files, one.kind);
    names.push_back(one.name);
  }
  if (names.empty()) return Failure{folder + " holds no files of records", kNameThem};
  return Failure{folder + " has no split " + core::quote(split) + " by the names of its files",
                 "its splits are " + quoted_names(names) + "; or name the files themselves"};
}

Result<LocalFiles> files_of_folder(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code unknown;
    if (at->is_regular_file(unknown)) files.push_back(at->path().filename().string());
  }
  if (files.empty()) return Failure{folder + " holds no files", kNameThem};
  std::sort(files.begin(), files.end());
  const hub::DataKind kind = hub::kind_of(files.front());
  const auto other =
      std::find_if(files.begin(), files.end(), [&](const std::string& file) { return hub::kind_of(file) != kind; });
  if (other != files.end())
    return Failure{folder + " holds files of several kinds: " + files.front() + " and " + *other, kNameThem};
  return read_files(folder, files, kind);
}

}  // namespace runner::cli
