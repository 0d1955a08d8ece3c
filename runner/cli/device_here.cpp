#include "runner/cli/device_here.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/text.h"
#include "runner/cuda/cuda.h"

namespace runner::cli {
namespace {

constexpr const char* kCpu = "cpu";
constexpr const char* kOnCpu = "; `device: cpu` trains without a GPU";

core::Failure no_driver() {
  return {"this machine has no NVIDIA driver", std::string("install it, and look at `nvidia-smi`") + kOnCpu};
}

core::Failure no_gpu_support() {
  return {"this roux is built without GPU support", std::string("`ROUX_PRESET=cuda ./roux` builds it with") + kOnCpu};
}

/// The GPUs that a training of this process can use, in CUDA's order.
core::Result<std::vector<cuda::Gpu>> usable_gpus() {
  if (!cuda::has_driver()) return no_driver();
  const auto loaded = cuda::load_cuda();
  if (!loaded) return loaded.failure();
  if (loaded.value() == nullptr) return no_gpu_support();
  return loaded.value()->gpus();
}

core::Result<int> usable_gpu_count() {
  const auto gpus = usable_gpus();
  if (!gpus) return gpus.failure();
  return static_cast<int>(gpus.value().size());
}

DeviceSituation situation_of(const resolve::Recipe& recipe, int processes, bool shares_process) {
  return {processes, shares_process, recipe.device != kCpu && cuda::has_driver(), usable_gpu_count};
}

/// The number in `cuda:1`.
std::optional<std::size_t> index_of(const std::string& device) {
  const std::size_t colon = device.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return static_cast<std::size_t>(std::stoi(device.substr(colon + 1)));
}

/// The memory of the smallest GPU that `processes` processes use.
std::int64_t smallest_memory(const std::string& device, int processes) {
  if (device == kCpu) return 0;
  const auto gpus = usable_gpus();
  if (!gpus) return 0;
  const std::size_t begin = index_of(device).value_or(0);
  const std::size_t end = std::min(gpus.value().size(), begin + static_cast<std::size_t>(std::max(1, processes)));
  std::int64_t smallest = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const std::int64_t bytes = gpus.value()[i].memory_bytes;
    smallest = smallest == 0 ? bytes : std::min(smallest, bytes);
  }
  return smallest;
}

void limit_memory(const std::string& device, int local_rank, std::int64_t bytes) {
  const auto loaded = cuda::load_cuda();
  if (!loaded || loaded.value() == nullptr) return;
  const std::optional<std::size_t> index = index_of(device);
  loaded.value()->limit_memory(index ? static_cast<int>(*index) : local_rank, bytes);
}

void hide_other_gpus(const resolve::Recipe& recipe) {
  if (const auto& ids = recipe.launch.gpu_ids) {
    setenv("CUDA_VISIBLE_DEVICES", core::joined(*ids, ",").c_str(), /*overwrite=*/1);
  }
}

std::string gpu_count(int gpus) { return "this machine has " + core::counted(gpus, "GPU", "GPUs"); }

std::string too_few(int processes, int gpus) {
  return std::to_string(processes) + " processes need a GPU each, but " + gpu_count(gpus);
}

std::string automatic_device(const resolve::Recipe& recipe, const DeviceSituation& situation,
                             core::Diagnostics& diagnostics) {
  if (situation.shares_process) return kCpu;
  const auto gpus = situation.gpus();
  if (!gpus && situation.has_driver) {
    diagnostics.notice(recipe.place("device"), "training on the CPU: " + gpus.failure().message, gpus.failure().hint);
  }
  if (!gpus || gpus.value() == 0) return kCpu;
  if (gpus.value() < situation.processes) {
    diagnostics.warning(recipe.place("device"), "training on the CPU: " + too_few(situation.processes, gpus.value()),
                        "use fewer processes, or write `device: cpu`");
    return kCpu;
  }
  if (situation.processes > 1) return "cuda";
  if (gpus.value() > 1) {
    diagnostics.notice(recipe.place("device"), gpu_count(gpus.value()) + ", and one of them is used",
                       "--num-processes auto trains on all");
  }
  return "cuda:0";
}

/// The GPU that a recipe names is there.
bool is_there(const resolve::Recipe& recipe, const DeviceSituation& situation, core::Diagnostics& diagnostics) {
  const core::Location& place = recipe.place("device");
  const std::string wanted = "device is " + recipe.device + ", but ";
  if (situation.shares_process) {
    diagnostics.error(place, wanted + "the trials of this sweep share a process that uses the CPU",
                      "set `sweep: {isolation: exec}`");
    return false;
  }
  const auto gpus = situation.gpus();
  if (!gpus) {
    diagnostics.error(place, wanted + gpus.failure().message, gpus.failure().hint);
    return false;
  }
  const auto index = static_cast<int>(index_of(recipe.device).value_or(0));
  if (gpus.value() < situation.processes) {
    diagnostics.error(recipe.place("launch.num_processes"), too_few(situation.processes, gpus.value()),
                      "use fewer processes, or `device: cpu`; CUDA_VISIBLE_DEVICES may hide some GPUs");
  } else if (index >= gpus.value()) {
    diagnostics.error(place, wanted + gpu_count(gpus.value()),
                      "they are numbered from 0; CUDA_VISIBLE_DEVICES may hide some");
  }
  return !diagnostics.has_errors();
}

}  // namespace

std::optional<std::string> choose_device(const resolve::Recipe& recipe, const DeviceSituation& situation,
                                         core::Diagnostics& diagnostics) {
  if (recipe.device == kCpu) return recipe.device;
  if (recipe.device == "auto") return automatic_device(recipe, situation, diagnostics);
  if (!is_there(recipe, situation, diagnostics)) return std::nullopt;
  return recipe.device == "cuda" && situation.processes == 1 ? "cuda:0" : recipe.device;
}

std::optional<DeviceHere> device_here(Session& session, const resolve::Recipe& recipe,
                                      const std::optional<core::RankInfo>& rank) {
  const bool shares_process = session.host.has_value();
  const int processes = rank ? rank->local_size : 1;
  if (!shares_process) hide_other_gpus(recipe);
  core::Diagnostics diagnostics;
  const auto device = choose_device(recipe, situation_of(recipe, processes, shares_process), diagnostics);
  session.show(diagnostics);
  if (!device) {
    session.exit_code = core::kExitUsage;
    return std::nullopt;
  }
  const auto& max_memory = recipe.training.max_memory;
  if (max_memory && *device != kCpu) limit_memory(*device, rank ? rank->local_rank : 0, *max_memory);
  return DeviceHere{*device, smallest_memory(*device, processes)};
}

DeviceHere planned_device(Session& session, const resolve::Recipe& recipe, int processes) {
  hide_other_gpus(recipe);
  core::Diagnostics diagnostics;
  const auto device = choose_device(recipe, situation_of(recipe, processes, false), diagnostics);
  if (!device) return {recipe.device};
  session.show(diagnostics);
  return {*device, smallest_memory(*device, processes)};
}

void check_named_device(Session& session, const resolve::Recipe& recipe) {
  if (recipe.device == kCpu || recipe.device == "auto") return;
  const bool has_driver = cuda::has_driver();
  if (has_driver && cuda::has_support()) return;
  const core::Failure failure = has_driver ? no_gpu_support() : no_driver();
  core::Diagnostics diagnostics;
  diagnostics.warning(recipe.place("device"), "device is " + recipe.device + ", but " + failure.message, failure.hint);
  session.show(diagnostics);
}

}  // namespace runner::cli
