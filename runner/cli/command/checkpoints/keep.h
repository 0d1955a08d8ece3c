#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/result.h"

namespace CLI {
class App;
}

namespace runner::cli {

struct Session;

struct KeepRequest {
  std::vector<std::string> checkpoints = {};  ///< `step-000500`, `500`, `best`, `last`, a path, or `RUN:` and a name
  std::string run = "last";                   ///< whose checkpoint a bare name means
  bool yes = false;                           ///< rm: without asking
  bool force = false;                         ///< rm: also what is pinned, in use, damaged, or the only one left
};

/// Each does it for all of the checkpoints or, when one of them will not do, for none. Returns what to print. Failure's
/// exit code is 2 when the request is wrong, 1 when the disk refuses.
core::Result<std::string> checkpoints_pin(const std::string& output_dir, const KeepRequest& request);
core::Result<std::string> checkpoints_unpin(const std::string& output_dir, const KeepRequest& request);
/// `confirm` is given the question that a user answers; blocks until then.
core::Result<std::string> checkpoints_rm(const std::string& output_dir, const KeepRequest& request,
                                         const core::Clock& clock,
                                         const std::function<bool(const std::string&)>& confirm);

void add_checkpoints_keep(CLI::App& group, Session& session);

}  // namespace runner::cli
