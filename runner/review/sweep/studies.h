#pragma once

#include <optional>
#include <string>

#include "runner/review/runs.h"

namespace runner::review {

struct SweepListRequest {
  std::string format = "text";  ///< text, json
  bool trash = false;           ///< lists the trash instead
};

struct SweepRemoveRequest {
  std::string sweep = "";
  bool empty_trash = false;
  bool yes = false;  ///< without asking
};

/// Each returns what to print, or nothing when `diagnostics` has the reason.
std::optional<std::string> sweep_list(const RunsContext& context, const SweepListRequest& request,
                                      core::Diagnostics& diagnostics);
/// Moves a sweep and its runs to the trash, or deletes the trash. Refused while the sweep has workers.
std::optional<std::string> sweep_remove(const RunsContext& context, const SweepRemoveRequest& request,
                                        core::Diagnostics& diagnostics);
std::optional<std::string> sweep_restore(const RunsContext& context, const SweepRemoveRequest& request,
                                         core::Diagnostics& diagnostics);

}  // namespace runner::review
