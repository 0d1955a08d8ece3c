#pragma once

#include <string>

#include "runner/registry/fragment.h"

namespace runner::registry {

/// Whether a tracker's tool is in use here, as far as its signs show: variables of the environment, and files in the
/// home folder or in the working folder and those above it.
struct ToolUse {
  bool is_configured = false;
  std::string why;  ///< `MLFLOW_TRACKING_URI is set`; "" where nothing is needed, or nothing found
};

ToolUse tool_use(const Fragment& tracker);

}  // namespace runner::registry
