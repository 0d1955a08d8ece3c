#pragma once

#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/hub/data_files.h"

namespace runner::cli {

/// Files of records, all of one kind, in the order of their names.
struct LocalFiles {
  std::vector<std::string> paths;
  hub::DataKind kind = hub::DataKind::kNone;

  /// As `path` of a data set has them: one, or a list.
  core::Node node() const;
};

/// The files of a split that `load_dataset(FOLDER)` reads of a folder that is here, by its card or by their names.
/// `subset`: "" for the default one. The Failure's message names the folder; its hint says what to write.
core::Result<LocalFiles> files_of_split(const std::string& folder, const std::string& subset, const std::string& split);
/// All files of a folder that is here, but not those of folders in it.
core::Result<LocalFiles> files_of_folder(const std::string& folder);

}  // namespace runner::cli
