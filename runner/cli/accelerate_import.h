#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::cli {

/// One option of `accelerate config` or `accelerate launch`, and what becomes of it here.
struct AccelerateOption {
  enum class State {
    kWorks,    ///< `key` says the same
    kFollows,  ///< from other keys, or from what is found: nothing is to be said
    kLater,    ///< not there yet
    kRefused,  ///< will not be
  };
  const char* name;
  State state;
  const char* key;   ///< of a recipe, or a flag or command; "" for none
  const char* note;  ///< how values translate, or why not
};

/// The one table: `roux config import` reads by it, and docs/accelerate-options.md is written from it.
const std::vector<AccelerateOption>& accelerate_options();

/// The page.
std::string accelerate_page();

/// The sections of a recipe that mean what an Accelerate config file says. What has no place here is told where it
/// stands; an option that nobody knows is an error.
core::Node recipe_of_accelerate(const core::Node& config, core::Diagnostics& diagnostics);

}  // namespace runner::cli
