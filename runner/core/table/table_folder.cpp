#include "runner/core/table/table_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/table/table_file.h"
#include "runner/core/text/text.h"

namespace runner::core {
namespace {

namespace fs = std::filesystem;

constexpr const char* kState = "state.json";          ///< of one split, by save_to_disk
constexpr const char* kSplits = "dataset_dict.json";  ///< of several in folders of their own, by save_to_disk
constexpr const char* kInfo = "dataset_info.json";    ///< of a cache, and beside state.json
/// Of results of `map` and `filter`, and of what was not finished, beside the set in a cache.
constexpr const char* kOther[] = {"cache-", "tmp"};
constexpr std::int64_t kJsonBytesMax = std::int64_t{64} << 20;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Result<Node> read_json_file(const std::string& path) {
  const auto text = read_file(path, kJsonBytesMax);
  if (!text) return text.failure();
  auto parsed = parse_json(text.value());
  if (!parsed) return Failure{path + ": " + parsed.failure().message, "fetch or write the folder again"};
  return parsed;
}

Result<std::vector<std::string>> files_of_state(const std::string& folder) {
  const std::string path = folder + "/" + kState;
  const auto state = read_json_file(path);
  if (!state) return state.failure();
  const Node* list = state.value().find("_data_files");
  if (list == nullptr || !list->is_sequence()) return Failure{path + " has no list _data_files", ""};
  std::vector<std::string> files;
  for (const Node& item : list->items()) {
    const Node* name = item.find("filename");
    // What is fetched from elsewhere names nothing outside of its folder.
    if (name == nullptr || !name->is_string() || fs::path(name->as_string()).filename() != name->as_string()) {
      return Failure{path + ": an entry of _data_files has no name of a file in its folder", ""};
    }
    files.push_back(folder + "/" + name->as_string());
    if (!is_there(files.back())) return Failure{path + " names " + files.back() + ", which does not exist", ""};
  }
  if (files.empty()) return Failure{path + " names no file", ""};
  return files;
}

Failure several_splits(const std::string& folder, const std::vector<std::string>& splits, const std::string& example) {
  return {folder + " has several splits: " + joined(splits, ", "), "name one: " + example};
}

Result<std::vector<std::string>> splits_of(const std::string& path, const Node& list) {
  std::vector<std::string> splits;
  for (const Node& item : list.items()) {
    if (!item.is_string()) return Failure{path + ": a split has no name", ""};
    splits.push_back(item.as_string());
  }
  for (const auto& entry : list.entries()) splits.push_back(entry.key);
  return splits;
}

/// The split that a file is named by, as the `datasets` library reads names; "" for none.
std::string split_of(const std::string& name) {
  constexpr std::pair<const char*, const char*> kWords[] = {
      {"train", "train"},      {"training", "train"}, {"validation", "validation"},
      {"valid", "validation"}, {"dev", "validation"}, {"val", "validation"},
      {"test", "test"},        {"testing", "test"},   {"eval", "test"},
      {"evaluation", "test"}};
  std::string word;
  for (const char c : name + ".") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    for (const auto& [known, split] : kWords) {
      if (word == known) return split;
    }
    word.clear();
  }
  return "";
}

/// The splits that a file of the folder lists under `splits`; none without such a file.
Result<std::vector<std::string>> listed_splits(const std::string& path) {
  if (!is_there(path)) return std::vector<std::string>{};
  const auto read = read_json_file(path);
  if (!read) return read.failure();
  const Node* list = read.value().find("splits");
  if (list == nullptr) return std::vector<std::string>{};
  return splits_of(path, *list);
}

}  // namespace

Result<std::vector<std::string>> table_files(const std::string& folder) {
  if (is_there(folder + "/" + kState)) return files_of_state(folder);
  const auto saved = listed_splits(folder + "/" + kSplits);
  if (!saved) return saved.failure();
  if (!saved.value().empty()) {
    return several_splits(folder, saved.value(), folder + "/" + saved.value().front());
  }
  const auto cached = listed_splits(folder + "/" + kInfo);
  if (!cached) return cached.failure();
  const auto names = list_folder(folder);
  if (!names) return names.failure();
  std::vector<std::string> files;
  for (const std::string& name : names.value()) {
    const bool is_other = std::any_of(std::begin(kOther), std::end(kOther),
                                      [&name](const char* other) { return name.starts_with(other); });
    if (is_table_path(name) && !is_other) files.push_back(folder + "/" + name);
  }
  if (files.empty()) {
    return Failure{folder + " has no Parquet or Arrow file", "name files, a glob, or the folder that has them"};
  }
  if (cached.value().size() > 1 && files.size() > 1) {
    return several_splits(folder, cached.value(), folder + "/*-" + cached.value().front() + "*.arrow");
  }
  std::set<std::string> named;
  for (const std::string& file : files) {
    if (std::string split = split_of(fs::path(file).filename().string()); !split.empty()) named.insert(split);
  }
  if (named.size() > 1) {
    const bool has_train = named.count("train") > 0;
    return several_splits(folder, {named.begin(), named.end()},
                          folder + "/*" + (has_train ? "train" : *named.begin()) + "*");
  }
  return files;
}

bool is_table_folder(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return false;
  for (const char* list : {kState, kSplits, kInfo}) {
    if (is_there(path + "/" + list)) return true;
  }
  const auto names = list_folder(path);
  return names && std::any_of(names.value().begin(), names.value().end(), is_table_path);
}

}  // namespace runner::core
