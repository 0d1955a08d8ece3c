#pragma once

#include <functional>
#include <string>

#include "runner/review/runs.h"

namespace runner::review {

struct RunsLogsRequest {
  std::string run = "last";
  bool in_order = false;  ///< merged by time, instead of one rank after the other
};

/// Calls `write` with each line of the logs of all ranks, prefixed by its rank. In order, a line without a time stays
/// behind the line before it, and lines of the same millisecond are sorted by rank.
void runs_logs(const RunsContext& context, const RunsLogsRequest& request,
               const std::function<void(const std::string&)>& write, core::Diagnostics& diagnostics);

}  // namespace runner::review
