#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/sweep/spec/sweep.h"

namespace runner::cli {

/// The flags that define a sweep.
struct SweepFlags {
  RecipeFlags recipe;
  std::vector<std::string> varied;  ///< `optimizer.lr=1e-4,3e-4`
  std::optional<std::int64_t> n_trials, max_concurrent_trials;
  std::string sampler;
};

/// The sweep that the command line asks for; nothing when the session has failed.
std::optional<sweep::Sweep> read_sweep(Session& session, const SweepFlags& flags);

}  // namespace runner::cli
