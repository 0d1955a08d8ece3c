#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/result.h"

namespace runner::review {

struct KeepRequest {
  std::vector<std::string> checkpoints = {};  ///< `step-000500`, `500`, `best`, `last`, a path, or `RUN:` and a name
  std::string run = "last";                   ///< run of the checkpoints that are given by name alone
  bool yes = false;                           ///< rm: without asking
  bool force = false;                         ///< rm: also what is pinned, in use, damaged, or the only one left
};

/// Each acts on all of the checkpoints, or on none when one of them is refused. Returns what to print. Failure has exit
/// code 2 when the request is wrong, 1 when the disk refuses.
core::Result<std::string> checkpoints_pin(const std::string& output_dir, const KeepRequest& request);
core::Result<std::string> checkpoints_unpin(const std::string& output_dir, const KeepRequest& request);
/// `confirm` gets the question for the user; blocks until it returns.
core::Result<std::string> checkpoints_rm(const std::string& output_dir, const KeepRequest& request,
                                         const core::Clock& clock,
                                         const std::function<bool(const std::string&)>& confirm);

}  // namespace runner::review
