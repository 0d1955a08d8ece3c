#include "runner/cli/device_here.h"

#include <cstdlib>

#include "runner/core/error.h"
#include "runner/core/text.h"
#include "runner/cuda/cuda.h"

namespace runner::cli {
namespace {

constexpr const char* kOnCpu = "; `device: cpu` trains without a GPU";

/// The number of GPUs that a training of this process can use.
core::Result<int> usable_gpus() {
  if (!cuda::has_driver()) {
    return core::Failure{"this machine has no NVIDIA driver",
                         std::string("install it, and look at `nvidia-smi`") + kOnCpu};
  }
  const auto loaded = cuda::load_cuda();
  if (!loaded) return loaded.failure();
  if (loaded.value() == nullptr) {
    return core::Failure{"this roux is built without GPU support",
                         std::string("`ROUX_PRESET=cuda ./roux` builds it with") + kOnCpu};
  }
  const auto gpus = loaded.value()->gpus();
  if (!gpus) return gpus.failure();
  return static_cast<int>(gpus.value().size());
}

std::string gpu_count(int gpus) { return "this machine has " + core::counted(gpus, "GPU", "GPUs"); }

std::string too_few(int processes, int gpus) {
  return std::to_string(processes) + " processes need a GPU each, but " + gpu_count(gpus);
}

std::string automatic_device(const resolve::Recipe& recipe, const DeviceSituation& situation,
                             core::Diagnostics& diagnostics) {
  constexpr const char* kCpu = "cpu";
  if (situation.shares_process || recipe.training.max_memory.has_value()) return kCpu;
  const auto gpus = situation.gpus();
  if (!gpus || gpus.value() == 0) return kCpu;
  if (gpus.value() < situation.processes) {
    diagnostics.warning(recipe.place("device"), "training on the CPU: " + too_few(situation.processes, gpus.value()),
                        "use fewer processes, or write `device: cpu`");
    return kCpu;
  }
  if (situation.processes > 1) return "cuda";
  if (gpus.value() > 1) {
    diagnostics.notice(recipe.place("device"), gpu_count(gpus.value()) + ", and one of them is used",
                       "--num-processes " + std::to_string(gpus.value()) + " trains on all");
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
  const std::size_t colon = recipe.device.find(':');
  const int index = colon == std::string::npos ? 0 : std::stoi(recipe.device.substr(colon + 1));
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
  if (recipe.device == "cpu") return recipe.device;
  if (recipe.device == "auto") return automatic_device(recipe, situation, diagnostics);
  if (!is_there(recipe, situation, diagnostics)) return std::nullopt;
  return recipe.device == "cuda" && situation.processes == 1 ? "cuda:0" : recipe.device;
}

std::optional<std::string> device_here(Session& session, const resolve::Recipe& recipe, int processes) {
  const bool shares_process = session.host.has_value();
  if (const auto& ids = recipe.launch.gpu_ids; ids && !shares_process) {
    setenv("CUDA_VISIBLE_DEVICES", core::joined(*ids, ",").c_str(), /*overwrite=*/1);
  }
  core::Diagnostics diagnostics;
  const auto device = choose_device(recipe, {processes, shares_process, usable_gpus}, diagnostics);
  session.show(diagnostics);
  if (!device) session.exit_code = core::kExitUsage;
  return device;
}

}  // namespace runner::cli
