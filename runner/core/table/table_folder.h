#pragma once

#include <string>
#include <vector>

#include "runner/core/result.h"

namespace runner::core {

/// The files of a table that is a folder, in their order: those that the `datasets` library's `state.json` names
/// (`save_to_disk`), those of its cache (`dataset_info.json`), or all with a name of is_table_path(). Failure names the
/// folder: it has none, several splits, or a file that its list names is missing.
Result<std::vector<std::string>> table_files(const std::string& folder);

/// Whether table_files() has something to say of a folder: it has such files, or a list of the `datasets` library.
bool is_table_folder(const std::string& path);

}  // namespace runner::core
