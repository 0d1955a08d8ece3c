#include "runner/cli/local_device.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "generated/section/launch.h"
#include "generated/section/training.h"
#include "runner/core/error.h"
#include "runner/core/platform/gpu_usage.h"
#include "runner/core/platform/python_package.h"
#include "runner/core/text/text.h"
#include "runner/cuda/cuda.h"
#include "runner/resolve/recipe.h"
#include "runner/sweep/trial/trainings.h"

namespace runner::cli {
namespace {

constexpr const char* kCpu = "cpu";
constexpr const char* kOnCpu = "; `device: cpu` trains without a GPU";
constexpr const char* kOtherGpu =
    "use a newer GPU (CUDA_VISIBLE_DEVICES chooses), or `device: cpu`, which trains without a GPU";
constexpr const char* kOverGloo = ", with `launch.backend: auto`";

core::Failure no_driver() {
  return {"this machine has no NVIDIA driver", std::string("install it, and look at `nvidia-smi`") + kOnCpu};
}

core::Failure no_gpu_support() {
  const core::Failure failure = core::no_gpu_libraries();
  return {failure.message, failure.hint + kOnCpu};
}

/// The GPUs that a training of this process can use, in CUDA's order.
core::Result<std::vector<cuda::Gpu>> usable_gpus() {
  if (!cuda::has_driver()) return no_driver();
  const auto loaded = cuda::load_cuda();
  if (!loaded) return loaded.failure();
  if (loaded.value() == nullptr) return no_gpu_support();
  return loaded.value()->gpus();
}

/// They are asked for once, and only when the answer depends on them: that starts CUDA.
class Gpus {
 public:
  const core::Result<std::vector<cuda::Gpu>>& list() {
    if (!list_) list_ = usable_gpus();
    return *list_;
  }
  core::Result<int> count() {
    if (!list()) return list().failure();
    return static_cast<int>(list().value().size());
  }
  /// gpus() has succeeded.
  std::string unusable(std::size_t gpu) {
    const cuda::Gpu& it = list().value().at(gpu);
    return it.unusable.empty() ? "" : "LibTorch cannot use " + it.name + ": " + it.unusable;
  }

 private:
  std::optional<core::Result<std::vector<cuda::Gpu>>> list_;
};

bool is_nccl(const resolve::Recipe& recipe) { return recipe.launch->backend == sections::launch::Backend::kNccl; }

DeviceEnvironment environment_of(const resolve::Recipe& recipe, int processes, Gpus& gpus) {
  DeviceEnvironment environment;
  environment.processes = processes;
  environment.has_driver = recipe.device != kCpu && cuda::has_driver();
  environment.gpus = [&gpus] { return gpus.count(); };
  environment.unusable = [&gpus](int gpu) { return gpus.unusable(static_cast<std::size_t>(gpu)); };
  return environment;
}

/// The number in `cuda:1`.
std::optional<std::size_t> index_of(const std::string& device) {
  const std::size_t colon = device.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return static_cast<std::size_t>(std::stoi(device.substr(colon + 1)));
}

LocalDevice described(const std::string& device, int processes, Gpus& gpus) {
  LocalDevice here{device};
  if (device == kCpu || !gpus.list()) return here;
  here.new_graph = [cuda = cuda::load_cuda().value()] { return cuda->new_graph(); };  // it was loaded to list them
  const std::vector<cuda::Gpu>& all = gpus.list().value();
  for (const cuda::Gpu& gpu : all) {
    here.gpu_addresses.push_back(gpu.pci_address);
    here.gpu_names.push_back(gpu.name);
  }
  here.nccl = cuda::load_cuda().value()->nccl();  // which listed them
  const std::size_t begin = index_of(device).value_or(0);
  const std::size_t end = std::min(all.size(), begin + static_cast<std::size_t>(std::max(1, processes)));
  for (std::size_t i = begin; i < end; ++i) {
    const std::int64_t bytes = all[i].memory_bytes;
    here.gpu_memory_bytes = here.gpu_memory_bytes == 0 ? bytes : std::min(here.gpu_memory_bytes, bytes);
  }
  return here;
}

void limit_memory(const std::string& device, int local_rank, std::int64_t bytes) {
  const auto loaded = cuda::load_cuda();
  if (!loaded || loaded.value() == nullptr) return;
  const std::optional<std::size_t> index = index_of(device);
  loaded.value()->limit_memory(index ? static_cast<int>(*index) : local_rank, bytes);
}

void hide_other_gpus(const resolve::Recipe& recipe) {
  if (std::getenv(sweep::kGpusShared) != nullptr) return;  // a trial has got some of them
  if (const auto& ids = recipe.launch->gpu_ids) {
    setenv("CUDA_VISIBLE_DEVICES", core::joined(*ids, ",").c_str(), /*overwrite=*/1);
  }
}

std::string gpu_count(int gpus) { return "this machine has " + core::counted(gpus, "GPU", "GPUs"); }

std::string too_few(int processes, int gpus) {
  return std::to_string(processes) + " processes need a GPU each, but " + gpu_count(gpus);
}

/// The index of the GPU that `device` names.
int gpu_of(const resolve::Recipe& recipe) { return static_cast<int>(index_of(recipe.device).value_or(0)); }

core::Failure no_such_gpu(const resolve::Recipe& recipe, int gpus) {
  return {"device is " + recipe.device + ", but " + gpu_count(gpus),
          "they are numbered from 0; CUDA_VISIBLE_DEVICES may hide some"};
}

/// Why LibTorch cannot use one of the GPUs that the training would take; "" if it can use them. They are there.
std::string unusable_gpu(const DeviceEnvironment& environment, int first) {
  for (int gpu = first; gpu < first + std::max(1, environment.processes); ++gpu) {
    if (std::string why = environment.unusable(gpu); !why.empty()) return why;
  }
  return "";
}

/// `device: auto` would be the CPU, and NCCL connects GPUs.
void tell_lack_of_gpus(const resolve::Recipe& recipe, int processes, const core::Result<int>& gpus,
                       core::Diagnostics& diagnostics) {
  const core::Location& location = recipe.location("launch.backend");
  if (gpus) {
    diagnostics.error(location, "backend is nccl, and " + too_few(processes, gpus.value()),
                      "use fewer processes, or write backend: auto");
  } else {
    diagnostics.error(location, "backend is nccl, but " + gpus.failure().message, gpus.failure().hint + kOverGloo);
  }
}

std::optional<std::string> automatic_device(const resolve::Recipe& recipe, const DeviceEnvironment& environment,
                                            core::Diagnostics& diagnostics) {
  if (environment.shares_process) return kCpu;
  const auto gpus = environment.gpus();
  const bool is_enough = gpus && gpus.value() >= std::max(1, environment.processes);
  if (environment.exchanges && is_nccl(recipe) && !is_enough) {
    tell_lack_of_gpus(recipe, environment.processes, gpus, diagnostics);
    return std::nullopt;
  }
  if (!gpus && environment.has_driver) {
    diagnostics.notice(recipe.location("device"), "training on the CPU: " + gpus.failure().message,
                       gpus.failure().hint);
  }
  if (!gpus || gpus.value() == 0) return kCpu;
  if (gpus.value() < environment.processes) {
    diagnostics.warning(recipe.location("device"),
                        "training on the CPU: " + too_few(environment.processes, gpus.value()),
                        "use fewer processes, or write `device: cpu`");
    return kCpu;
  }
  if (const std::string why = unusable_gpu(environment, 0); !why.empty()) {
    diagnostics.warning(recipe.location("device"), "training on the CPU: " + why, kOtherGpu);
    return kCpu;
  }
  if (environment.processes > 1) return "cuda";
  if (gpus.value() > 1 && environment.may_take_all) {
    diagnostics.notice(recipe.location("device"), gpu_count(gpus.value()) + ", and one of them is used",
                       "--num-processes auto trains on all of them");
  }
  return "cuda:0";
}

/// The GPU that a recipe names is there.
bool is_there(const resolve::Recipe& recipe, const DeviceEnvironment& environment, core::Diagnostics& diagnostics) {
  const core::Location& location = recipe.location("device");
  const std::string wanted = "device is " + recipe.device + ", but ";
  if (environment.shares_process) {
    diagnostics.error(location, wanted + "the trials of this sweep share a process that uses the CPU",
                      "set `sweep: {isolation: exec}`");
    return false;
  }
  const auto gpus = environment.gpus();
  if (!gpus) {
    diagnostics.error(location, wanted + gpus.failure().message, gpus.failure().hint);
    return false;
  }
  if (gpus.value() < environment.processes) {
    diagnostics.error(recipe.location("launch.num_processes"), too_few(environment.processes, gpus.value()),
                      "use fewer processes, or `device: cpu`; CUDA_VISIBLE_DEVICES may hide some GPUs");
  } else if (gpu_of(recipe) >= gpus.value()) {
    const core::Failure failure = no_such_gpu(recipe, gpus.value());
    diagnostics.error(location, failure.message, failure.hint);
  } else if (const std::string why = unusable_gpu(environment, gpu_of(recipe)); !why.empty()) {
    diagnostics.error(location, wanted + why, kOtherGpu);
  }
  return !diagnostics.has_errors();
}

}  // namespace

std::optional<std::string> choose_device(const resolve::Recipe& recipe, const DeviceEnvironment& environment,
                                         core::Diagnostics& diagnostics) {
  if (recipe.device == kCpu) return recipe.device;
  if (recipe.device == "auto") return automatic_device(recipe, environment, diagnostics);
  if (!is_there(recipe, environment, diagnostics)) return std::nullopt;
  return recipe.device == "cuda" && environment.processes == 1 ? "cuda:0" : recipe.device;
}

std::optional<LocalDevice> local_device(Session& session, const resolve::Recipe& recipe,
                                        const std::optional<core::RankInfo>& rank, bool may_take_all) {
  const int processes = rank ? rank->local_size : 1;
  Gpus gpus;
  DeviceEnvironment environment = environment_of(recipe, processes, gpus);
  environment.shares_process = session.host.has_value();
  environment.may_take_all = may_take_all;
  environment.exchanges = rank && rank->size > 1;
  if (!environment.shares_process) hide_other_gpus(recipe);
  core::Diagnostics diagnostics;
  const auto device = choose_device(recipe, environment, diagnostics);
  session.show(diagnostics);
  if (!device) {
    session.exit_code = core::kExitUsage;
    return std::nullopt;
  }
  const auto& max_memory = recipe.training->max_memory;
  if (max_memory && *device != kCpu) limit_memory(*device, rank ? rank->local_rank : 0, *max_memory);
  return described(*device, processes, gpus);
}

LocalDevice planned_device(Session& session, const resolve::Recipe& recipe, int processes) {
  hide_other_gpus(recipe);
  Gpus gpus;
  DeviceEnvironment environment = environment_of(recipe, processes, gpus);
  environment.exchanges = recipe.launch->num_processes > 1;
  core::Diagnostics diagnostics;
  const auto device = choose_device(recipe, environment, diagnostics);
  if (!device && recipe.device == "auto") {
    core::Diagnostics warnings;
    for (const core::Diagnostic& told : diagnostics.all()) warnings.warning(told.location, told.message, told.hint);
    session.show(warnings);
  }
  if (!device) return {recipe.device};
  session.show(diagnostics);
  return described(*device, processes, gpus);
}

void check_named_device(Session& session, const resolve::Recipe& recipe) {
  const bool is_open = recipe.device == "auto";
  if (recipe.device == kCpu || (is_open && !(is_nccl(recipe) && recipe.launch->num_processes > 1))) return;
  core::Diagnostics diagnostics;
  const bool has_driver = cuda::has_driver();
  if (!has_driver || !cuda::has_support()) {
    const core::Failure failure = has_driver ? no_gpu_support() : no_driver();
    if (is_open) {
      diagnostics.warning(recipe.location("launch.backend"), "backend is nccl, but " + failure.message,
                          failure.hint + kOverGloo);
    } else {
      diagnostics.warning(recipe.location("device"), "device is " + recipe.device + ", but " + failure.message,
                          failure.hint);
    }
  } else if (!is_open && core::GpuUsage().count() > 0) {  // otherwise the driver does not tell
    const auto& ids = recipe.launch->gpu_ids;
    const int visible = ids ? static_cast<int>(ids->size()) : core::visible_gpus();
    if (gpu_of(recipe) >= visible) {
      const core::Failure failure = no_such_gpu(recipe, visible);
      diagnostics.warning(recipe.location("device"), failure.message, failure.hint);
    }
  }
  session.show(diagnostics);
}

}  // namespace runner::cli
