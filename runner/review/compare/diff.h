#pragma once

#include <optional>
#include <string>

#include "runner/review/runs.h"

namespace runner::review {

struct RunsDiffRequest {
  std::string a = "", b = "";
  std::string format = "text";  ///< text, json
};

/// What one run has that another has not: recipe, environment, code, metrics with the first step at which they part.
std::optional<std::string> runs_diff(const RunsContext& context, const RunsDiffRequest& request,
                                     core::Diagnostics& diagnostics);

}  // namespace runner::review
