#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/core/platform/connect_nccl.h"
#include "runner/core/platform/device_graph.h"
#include "runner/core/rank_info.h"
#include "runner/core/result.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::cli {

/// What a process knows about where it trains.
struct DeviceEnvironment {
  int processes = 1;            ///< of the training, on this machine
  bool shares_process = false;  ///< it was forked from one that has loaded LibTorch for the CPU
  bool has_driver = true;       ///< of NVIDIA; without one, no GPU is expected
  bool may_take_all = false;    ///< with --num-processes auto it could: worth a notice where GPUs are left
  /// The number of GPUs that this process can use, or why it can use none. Called when the answer depends on it.
  std::function<core::Result<int>()> gpus;
  /// Why LibTorch cannot compute on one of those GPUs, with its name; "" if it can.
  std::function<std::string(int gpu)> unusable = [](int) { return std::string(); };
  bool exchanges = false;  ///< tensors with other processes
};

/// The device of a recipe: `cpu`, `cuda:1`, or `cuda` when several processes take a GPU each. `auto` is a GPU if there
/// are enough of them and they can train this recipe, and never the CPU for processes that NCCL is to connect. Nothing
/// when `diagnostics` got an error.
std::optional<std::string> choose_device(const resolve::Recipe& recipe, const DeviceEnvironment& environment,
                                         core::Diagnostics& diagnostics);

struct LocalDevice {
  std::string name;                             ///< as choose_device() says it
  std::int64_t gpu_memory_bytes = 0;            ///< of the smallest GPU that this machine's processes use; 0 on the CPU
  std::vector<std::string> gpu_addresses = {};  ///< on the PCI bus, of all GPUs that this process sees; none on the CPU
  std::vector<std::string> gpu_names = {};      ///< `NVIDIA H100 80GB HBM3`, of the same
  core::ConnectNccl nccl = nullptr;             ///< of the GPU support; null on the CPU, or where it has none
  core::NewDeviceGraph new_graph = {};          ///< of the GPUs; null on the CPU
};

/// The same for this process, with its diagnostics shown; nothing when there is an error. Hides the GPUs that are not
/// in `launch.gpu_ids` from it, and limits the memory of its GPU to `training.max_memory`. Loads GPU support for a GPU;
/// call it before the engine. `may_take_all` as in DeviceEnvironment.
std::optional<LocalDevice> local_device(Session& session, const resolve::Recipe& recipe,
                                        const std::optional<core::RankInfo>& rank = std::nullopt,
                                        bool may_take_all = false);

/// The same for `processes` processes on this machine that are planned, not started. A GPU that this machine does not
/// have is no error: the recipe may be meant for another one.
LocalDevice planned_device(Session& session, const resolve::Recipe& recipe, int processes);

/// Warns of a GPU that this process cannot use and the recipe needs, as far as that is known without loading GPU
/// support.
void check_named_device(Session& session, const resolve::Recipe& recipe);

}  // namespace runner::cli
