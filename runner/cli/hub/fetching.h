#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/hub/fetch.h"

namespace runner::cli {

/// What a command fetches from the Hugging Face Hub and other servers before it begins.
enum class HubUse {
  kCache,     ///< nothing: what is in the cache serves
  kSettings,  ///< all but the weights of `init_from`; its configuration where the recipe has no model
  kAll,
};

/// Fetches what an `hf://` name or a URL with a checksum means, with progress on standard error: live on a terminal,
/// else a line every few seconds; none if `quiet`. `part`: of a repository.
core::Result<hub::Located> fetch_named(const std::string& name, hub::Part part, bool quiet);

/// Fetches what the recipe names, whose `${...}` are replaced; what is wrong with a name itself is left to its
/// validation. Returns 0, or the exit status after errors at their locations.
int fetch_of_recipe(core::Node recipe, HubUse use, bool quiet, core::Diagnostics& diagnostics);

}  // namespace runner::cli
