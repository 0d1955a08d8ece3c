#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/hub/data_set.h"
#include "runner/hub/fetch.h"

namespace runner::cli {

/// What a command fetches from the Hugging Face Hub and other servers before it begins.
enum class HubUse {
  kCache,     ///< nothing: what is in the cache serves
  kPlan,      ///< as kSettings, without data sets that are named by their repository: they may be large
  kSettings,  ///< all but the weights of `init_from`; its configuration where the recipe has no model
  kAll,
};

/// Fetches what an `hf://` name or a URL with a checksum means, with progress on standard error: live on a terminal,
/// else a line every few seconds; none if `quiet`. `part`: of a repository.
core::Result<hub::Located> fetch_named(const std::string& name, hub::Part part, bool quiet);

/// The files of a data set, with their names and sizes before the first byte, and progress as above. RunError says what
/// to do.
hub::DataSet fetch_data_set(const hub::DataRequest& request, bool quiet);

/// Fetches what the recipe names, whose `${...}` are replaced; what is wrong with a name itself is left to its
/// validation. Returns 0, or the exit status after errors at their locations.
int fetch_of_recipe(core::Node recipe, HubUse use, bool quiet, core::Diagnostics& diagnostics);

}  // namespace runner::cli
