#include "runner/cli/device_here.h"

#include "runner/core/error.h"
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

/// What resolve refuses on a GPU.
bool needs_cpu(const resolve::Recipe& recipe) {
  return recipe.launch.num_processes > 1 || recipe.training.max_memory.has_value();
}

}  // namespace

std::optional<std::string> device_here(Session& session, const resolve::Recipe& recipe) {
  const std::string& wanted = recipe.device;
  const bool shares_process = session.host.has_value();  // forked from one that has loaded LibTorch for the CPU
  if (wanted == "cpu") return wanted;
  if (wanted == "auto") {
    if (shares_process || needs_cpu(recipe)) return "cpu";
    const auto gpus = usable_gpus();
    return gpus && gpus.value() > 0 ? "cuda:0" : "cpu";
  }
  const std::size_t colon = wanted.find(':');
  const std::string device = colon == std::string::npos ? wanted + ":0" : wanted;
  core::Diagnostics diagnostics;
  const core::Location& place = recipe.place("device");
  if (shares_process) {
    diagnostics.error(place, "device is " + wanted + ", but the trials of this sweep share a process that uses the CPU",
                      "set `sweep: {isolation: exec}`");
  } else if (const auto gpus = usable_gpus(); !gpus) {
    diagnostics.error(place, "device is " + wanted + ", but " + gpus.failure().message, gpus.failure().hint);
  } else if (const int index = std::stoi(device.substr(device.find(':') + 1)); index >= gpus.value()) {
    diagnostics.error(place,
                      "device is " + wanted + ", but this machine has " + std::to_string(gpus.value()) +
                          (gpus.value() == 1 ? " GPU" : " GPUs"),
                      "they are numbered from 0; CUDA_VISIBLE_DEVICES may hide some");
  }
  if (!diagnostics.has_errors()) return device;
  session.show(diagnostics);
  session.exit_code = core::kExitUsage;
  return std::nullopt;
}

}  // namespace runner::cli
