#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::cli {

/// An option of `accelerate config` or `accelerate launch`, and its equivalent.
struct AccelerateOption {
  enum class State {
    kWorks,    ///< `key` is the equivalent
    kFollows,  ///< implied by other keys or detected: no setting needed
    kLater,    ///< planned
    kRefused,  ///< will not be supported
  };
  const char* name;
  State state;
  const char* key;   ///< of a recipe, or a flag or command; "" for none
  const char* note;  ///< how values translate, or why not
};

/// The table of `roux config import`; docs/accelerate-options.md is generated from it.
const std::vector<AccelerateOption>& accelerate_options();

/// docs/accelerate-options.md.
std::string accelerate_page();

/// The sections of a recipe equivalent to an Accelerate config file. Warns about options, devices and compilers without
/// an equivalent; an unknown option is an error.
core::Node recipe_of_accelerate(const core::Node& config, core::Diagnostics& diagnostics);

}  // namespace runner::cli
