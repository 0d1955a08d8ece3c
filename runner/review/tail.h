#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/review/runs.h"
#include "trackers/follow.h"

namespace runner::review {

struct RunsTailRequest {
  std::string run = "last";
  int lines = 10;                         ///< existing lines to show first
  std::vector<std::string> metrics = {};  ///< names; `*` matches any text; empty: all of the training loop
  std::int64_t rank = -1;                 ///< shows the log of this rank instead; -1: metrics
};

/// Calls `write` with a line for each logged step and each event, or with the lines of a log: first the last existing
/// ones, then new ones. Blocks until the run has ended or `waiter` returns false. RunError when the run cannot be read.
void runs_tail(const RunsContext& context, const RunsTailRequest& request,
               const std::function<void(const std::string&)>& write, trackers::Waiter& waiter,
               core::Diagnostics& diagnostics);

}  // namespace runner::review
