#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/review/runs.h"
#include "trackers/follow.h"

namespace runner::review {

struct RunsTailRequest {
  std::string run = "last";
  int lines = 10;                         ///< of what there is already
  std::vector<std::string> metrics = {};  ///< names, in which `*` stands for any text; empty: all of the loop's
  std::int64_t rank = -1;                 ///< the log of this process instead of metrics
};

/// Gives `write` a line for each step that is logged and each event, or the lines of a log; first the last ones that
/// are there already, then what comes. Blocks until the run has ended, or `waiter` says to leave. RunError when the
/// run cannot be read.
void runs_tail(const RunsContext& context, const RunsTailRequest& request,
               const std::function<void(const std::string&)>& write, trackers::Waiter& waiter,
               core::Diagnostics& diagnostics);

}  // namespace runner::review
