#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runner/cli/session.h"
#include "runner/core/result.h"
#include "runner/resolve/load.h"

namespace runner::cli {

/// What a process knows about where it trains.
struct DeviceSituation {
  int processes = 1;            ///< of the training, on this machine
  bool shares_process = false;  ///< it was forked from one that has loaded LibTorch for the CPU
  /// The number of GPUs that this process can use, or why it can use none. Called when the answer depends on it.
  std::function<core::Result<int>()> gpus;
};

/// The device of a recipe: `cpu`, `cuda:1`, or `cuda` when several processes take a GPU each. `auto` is a GPU if there
/// are enough of them and they can train this recipe. Nothing when `diagnostics` got an error.
std::optional<std::string> choose_device(const resolve::Recipe& recipe, const DeviceSituation& situation,
                                         core::Diagnostics& diagnostics);

/// The same for this process, with its diagnostics shown. Hides the GPUs that are not in `launch.gpu_ids` from it.
/// Loads GPU support for a GPU; call it before the engine.
std::optional<std::string> device_here(Session& session, const resolve::Recipe& recipe, int processes = 1);

}  // namespace runner::cli
