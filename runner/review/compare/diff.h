#pragma once

#include <optional>
#include <string>

#include "runner/review/runs.h"

namespace runner::review {

struct RunsDiffRequest {
  std::string a = "", b = "";
  std::string format = "text";  ///< text, json
};

/// How two runs differ: recipe, environment, code, and the first step at which metrics diverge.
std::optional<std::string> runs_diff(const RunsContext& context, const RunsDiffRequest& request,
                                     core::Diagnostics& diagnostics);

}  // namespace runner::review
