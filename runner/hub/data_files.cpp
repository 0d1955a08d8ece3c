#include "runner/hub/data_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "runner/core/packed/packed_file.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/pattern.h"

namespace runner::hub {
namespace {

using core::Failure;
using core::Result;
using Files = std::vector<std::string>;

struct Ending {
  const char* ending;
  DataKind kind;
};
constexpr std::array kEndings = {
    Ending{"jsonl", DataKind::kJson},      Ending{"json", DataKind::kJson},   Ending{"ndjson", DataKind::kJson},
    Ending{"parquet", DataKind::kParquet}, Ending{"arrow", DataKind::kArrow}, Ending{"csv", DataKind::kCsv},
    Ending{"tsv", DataKind::kCsv},         Ending{"txt", DataKind::kText},
};
/// What `datasets` reads besides: a repository of these is not one of the notes that lie beside them.
constexpr const char* kOtherEndings[] = {
    "gz",    "zst",  "bz2", "xz",  "lz4",  "zip", "tar", "geoparquet", "gpq",  "xml",  "h5",  "hdf5", "conll", "conllu",
    "lance", "eval", "png", "jpg", "jpeg", "gif", "bmp", "webp",       "tif",  "tiff", "svg", "wav",  "mp3",   "flac",
    "ogg",   "opus", "m4a", "aac", "mp4",  "avi", "mkv", "mov",        "webm", "pdf",  "nii", "npy",  "npz",   "pkl"};

struct KindWords {
  DataKind kind;
  const char* files;
  std::vector<const char*> types;
};
const std::vector<KindWords>& kind_words() {
  static const std::vector<KindWords> words = {{DataKind::kJson, "JSON files", {"jsonl", "ids"}},
                                               {DataKind::kParquet, "Parquet files", {"jsonl", "ids"}},
                                               {DataKind::kArrow, "Arrow files", {"jsonl", "ids"}},
                                               {DataKind::kCsv, "CSV files", {"csv_table", "jsonl"}},
                                               {DataKind::kText, "text files", {"text", "text_lines"}}};
  return words;
}

struct Keywords {
  const char* split;
  std::vector<const char*> words;
};
const std::vector<Keywords>& keywords() {
  static const std::vector<Keywords> words = {{"train", {"train", "training"}},
                                              {"validation", {"validation", "valid", "dev", "val"}},
                                              {"test", {"test", "testing", "eval", "evaluation"}}};
  return words;
}
constexpr const char* kBetween = "[-._ 0-9]";
constexpr const char* kSharded = "data/*-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*.*";
constexpr const char* kNotData[] = {
    kCard, "config.json", "dataset_info.json", "dataset_infos.json", "dummy_data.zip", "dataset_dict.json"};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// In lower case, without the dot; "" for none.
std::string ending_of(std::string_view file) {
  const std::string_view name = base_name(file);
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? "" : core::lower(name.substr(dot + 1));
}

/// The ending that says what is in it: of a compressed file, that of what was packed.
std::string inner_ending(std::string_view file) { return ending_of(core::without_packed_ending(file)); }

/// The files of a repository that a pattern means.
Files found(const std::string& pattern, const Files& repository) {
  Files files;
  for (const std::string& file : repository) {
    const std::string_view name = base_name(file);
    const bool is_data = std::none_of(std::begin(kNotData), std::end(kNotData), [&](std::string_view other) {
      return name == other && base_name(pattern) != other;
    });
    if (is_data && matches(pattern, file)) files.push_back(file);
  }
  return files;
}

std::string below(const std::string& folder, const std::string& pattern) {
  return folder.empty() ? pattern : folder + "/" + pattern;
}

/// All files of some patterns, once.
Files found_by(const std::vector<std::string>& patterns, const Files& repository) {
  std::set<std::string> files;
  for (const std::string& pattern : patterns) {
    for (std::string& file : found(pattern, repository)) files.insert(std::move(file));
  }
  return {files.begin(), files.end()};
}

/// Keeps the files of the most frequent ending's kind, as `datasets` does; of endings as frequent, Parquet's.
DataSplit split_of(std::string name, Files files) {
  std::map<std::string, int> counts;
  for (const std::string& file : files) {
    if (kind_of(file) != DataKind::kNone) ++counts[inner_ending(file)];
  }
  const auto rank = [](const std::pair<const std::string, int>& one) {
    const std::string& ending = one.first;
    return std::tuple(one.second, ending == "parquet", ending == "arrow", ending == "jsonl", ending == "json",
                      ending == "csv", ending);
  };
  const auto most =
      std::max_element(counts.begin(), counts.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  DataSplit split{.name = std::move(name), .files = std::move(files)};
  if (most == counts.end()) {
    split.files.clear();
    return split;
  }
  for (const std::string& file : split.files) {
    if (inner_ending(file) != most->first) continue;
    split.kind = kind_of(file);
    break;
  }
  std::erase_if(split.files, [&split](const std::string& file) { return kind_of(file) != split.kind; });
  return split;
}

/// `train` of data/train-00000-of-00005.parquet; the file matches kSharded.
std::string sharded_split(const std::string& file) {
  constexpr std::size_t kNumber = 6;  // -00000
  const std::string_view name = base_name(file);
  std::size_t of = name.rfind("-of-");
  const auto is_here = [&name](std::size_t at) {
    return at >= kNumber && is_number(name.substr(at - kNumber + 1, kNumber - 1)) && name[at - kNumber] == '-' &&
           is_number(name.substr(at + 4, kNumber - 1)) && name.size() >= at + 4 + kNumber - 1;
  };
  while (of != std::string_view::npos && of > 0 && !is_here(of)) of = name.rfind("-of-", of - 1);
  return std::string(name.substr(0, of - kNumber));
}

/// The known ones first.
std::vector<std::string> in_order(const std::set<std::string>& names) {
  std::vector<std::string> order;
  for (const Keywords& known : keywords()) {
    if (names.contains(known.split)) order.emplace_back(known.split);
  }
  for (const std::string& name : names) {
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  }
  return order;
}

std::vector<DataSplit> by_shards(const std::string& folder, const Files& repository) {
  std::map<std::string, Files> shards;
  std::set<std::string> names;
  for (const std::string& file : found(below(folder, kSharded), repository)) {
    const std::string split = sharded_split(file);
    shards[split].push_back(file);
    names.insert(split);
  }
  std::vector<DataSplit> splits;
  for (const std::string& name : in_order(names)) splits.push_back(split_of(name, shards.at(name)));
  return splits;
}

std::vector<DataSplit> by_keywords(const std::string& folder, bool of_folders, const Files& repository) {
  std::vector<DataSplit> splits;
  for (const Keywords& known : keywords()) {
    std::vector<std::string> patterns;
    for (const std::string word : known.words) {
      const std::string end = of_folders ? "/**" : "", next = kBetween;
      if (of_folders) patterns.push_back(below(folder, "**/" + word + end));
      patterns.push_back(below(folder, "**/" + word + next + "*" + end));
      if (of_folders) patterns.push_back(below(folder, "**/*" + next + word + end));
      patterns.push_back(below(folder, "**/*" + next + word + next + "*" + end));
    }
    DataSplit split = split_of(known.split, found_by(patterns, repository));
    if (!split.files.empty()) splits.push_back(std::move(split));  // scripts and notes have such names, too
  }
  return splits;
}

std::vector<DataSplit> by_names(const std::string& folder, const Files& repository) {
  std::vector<DataSplit> splits = by_shards(folder, repository);
  if (splits.empty()) splits = by_keywords(folder, /*of_folders=*/true, repository);
  if (splits.empty()) splits = by_keywords(folder, /*of_folders=*/false, repository);
  if (!splits.empty()) return splits;
  DataSplit all = split_of("train", found_by({below(folder, "**")}, repository));
  if (!all.files.empty()) splits.push_back(std::move(all));
  return splits;
}

Result<DataSubset> subset_of(const CardSubset& card, const Files& repository) {
  DataSubset subset{.name = card.name};
  if (card.files.empty()) {
    subset.splits = by_names(card.folder, repository);
    return subset;
  }
  for (const auto& [split, patterns] : card.files) {
    for (const std::string& pattern : patterns) {
      if (is_pattern(pattern) || !found(pattern, repository).empty()) continue;
      return Failure{" lacks " + core::quote(pattern) + ", which its card names for the split " + core::quote(split)};
    }
    subset.splits.push_back(split_of(split, found_by(patterns, repository)));
  }
  return subset;
}

/// Of several one that is called `default` or says so.
Result<void> choose_default(const std::vector<CardSubset>& card, std::vector<DataSubset>& subsets) {
  const DataSubset* first = nullptr;
  for (std::size_t i = 0; i < subsets.size(); ++i) {
    const bool is_default =
        subsets.size() == 1 || subsets[i].name == "default" || (i < card.size() && card[i].is_default);
    if (!is_default) continue;
    if (first != nullptr) {
      return Failure{" has two subsets that are the default one: " + core::quote(first->name) + " and " +
                     core::quote(subsets[i].name)};
    }
    subsets[i].is_default = true;
    first = &subsets[i];
  }
  return {};
}

/// SUBSET/[partial-]SPLIT[-partN]/0000.parquet.
struct ConvertedFile {
  std::string subset, split;
  bool is_partial = false;
};
std::optional<ConvertedFile> converted(const std::string& file) {
  constexpr std::string_view kPartial = "partial-", kPart = "-part", kEnd = ".parquet";
  const std::size_t first = file.find('/'), second = file.find('/', first + 1);
  if (first == std::string::npos || second == std::string::npos || !file.ends_with(kEnd)) return std::nullopt;
  if (!is_number(std::string_view(file).substr(second + 1, file.size() - second - 1 - kEnd.size())))
    return std::nullopt;
  ConvertedFile found{file.substr(0, first), file.substr(first + 1, second - first - 1)};
  found.is_partial = found.split.starts_with(kPartial);
  if (found.is_partial) found.split.erase(0, kPartial.size());
  const std::size_t part = found.split.rfind(kPart);
  if (part != std::string::npos && part > 0 && is_number(std::string_view(found.split).substr(part + kPart.size()))) {
    found.split.resize(part);
  }
  return found;
}

}  // namespace

DataKind kind_of(std::string_view file) {
  const std::string ending = inner_ending(file);
  const auto* known =
      std::find_if(kEndings.begin(), kEndings.end(), [&](const Ending& one) { return ending == one.ending; });
  const bool is_packed = core::is_packed(file);
  if (known != kEndings.end() && (!is_packed || known->kind == DataKind::kJson)) return known->kind;
  const bool is_other =
      is_packed || std::find(std::begin(kOtherEndings), std::end(kOtherEndings), ending) != std::end(kOtherEndings);
  return is_other ? DataKind::kOther : DataKind::kNone;
}

std::string words_of(DataKind kind) {
  for (const KindWords& words : kind_words()) {
    if (words.kind == kind) return words.files;
  }
  return "files of other kinds";
}

std::vector<std::string> types_for(DataKind kind) {
  for (const KindWords& words : kind_words()) {
    if (words.kind == kind) return {words.types.begin(), words.types.end()};
  }
  return {};
}

bool reads(std::string_view type, DataKind kind) {
  const std::vector<std::string> types = types_for(kind);
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool reads_one_file(std::string_view type) { return type == "csv_table"; }

bool is_named_by_repository(std::string_view type) {
  const auto& kinds = kind_words();
  return std::any_of(kinds.begin(), kinds.end(), [type](const KindWords& words) { return reads(type, words.kind); });
}

Result<std::vector<DataSubset>> data_subsets(const std::vector<CardSubset>& card, const Files& repository) {
  std::vector<DataSubset> subsets;
  for (const CardSubset& one : card) {
    auto subset = subset_of(one, repository);
    if (!subset) return subset.failure();
    subsets.push_back(std::move(subset).value());
  }
  if (card.empty()) subsets.push_back({.name = "default", .splits = by_names("", repository)});
  if (const auto chosen = choose_default(card, subsets); !chosen) return chosen.failure();
  return subsets;
}

std::vector<DataSubset> converted_subsets(const Files& repository) {
  std::map<std::string, std::map<std::string, DataSplit>> found;
  for (const std::string& file : repository) {
    const auto at = converted(file);
    if (!at) continue;
    DataSplit& split = found[at->subset][at->split];
    split.name = at->split;
    split.kind = DataKind::kParquet;
    split.is_partial = split.is_partial || at->is_partial;
    split.files.push_back(file);
  }
  std::vector<DataSubset> subsets;
  for (auto& [name, splits] : found) {
    DataSubset subset{.name = name, .is_default = found.size() == 1 || name == "default"};
    std::set<std::string> names;
    for (const auto& [split, files] : splits) names.insert(split);
    for (const std::string& split : in_order(names)) {
      subset.splits.push_back(std::move(splits.at(split)));
      std::sort(subset.splits.back().files.begin(), subset.splits.back().files.end());
    }
    subsets.push_back(std::move(subset));
  }
  return subsets;
}

bool is_converted(const Files& repository) {
  bool has_any = false;
  for (const std::string& file : repository) {
    if (kind_of(file) == DataKind::kNone) continue;
    if (!converted(file)) return false;
    has_any = true;
  }
  return has_any;
}

}  // namespace runner::hub
