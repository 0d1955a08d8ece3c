#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"
#include "runner/hub/data_card.h"

namespace runner::hub {

/// What files of a data set hold, by their names.
enum class DataKind {
  kNone,   ///< nothing that a data set reads, such as a script or a note
  kOther,  ///< data that roux does not read, such as pictures
  kJson,   ///< JSON lines or arrays
  kParquet,
  kArrow,
  kCsv,
  kText,
};

/// By the last ending but that of a compressed file: `train.jsonl.gz` is kJson.
DataKind kind_of(std::string_view file);
/// `Parquet files`, for messages.
std::string words_of(DataKind kind);
/// The types of data sets that read files of a kind, as a recipe writes them; empty for none.
std::vector<std::string> types_for(DataKind kind);
/// Whether a type takes the files of a split: it has to read their kind. Some types read one file.
bool reads(std::string_view type, DataKind kind);
bool reads_one_file(std::string_view type);
/// Whether a data set of this type can be named by its repository at all.
bool is_named_by_repository(std::string_view type);

/// A split of a subset. `files` are of one kind, in the order of their names.
struct DataSplit {
  std::string name;
  std::vector<std::string> files = {};
  DataKind kind = DataKind::kNone;
  bool is_partial = false;  ///< only its beginning was converted
};

struct DataSubset {
  std::string name;
  bool is_default = false;  ///< at most one is
  std::vector<DataSplit> splits = {};
};

// What `load_dataset` of the `datasets` library finds: src/datasets/data_files.py and load.py there.

/// The subsets that a card describes, or, without any, the one that the names of files make. Of the files of a split
/// those of the most frequent kind count. The Failure's message follows the name of the repository.
core::Result<std::vector<DataSubset>> data_subsets(const std::vector<CardSubset>& card,
                                                   const std::vector<std::string>& repository);

/// Of the branch `refs/convert/parquet`, where the Hub puts what it converted: SUBSET/SPLIT/0000.parquet.
std::vector<DataSubset> converted_subsets(const std::vector<std::string>& repository);
/// Whether the files lie as those of that branch.
bool is_converted(const std::vector<std::string>& repository);

}  // namespace runner::hub
