#include "runner/cli/group/trial_devices.h"

#include <algorithm>
#include <string>
#include <vector>

#include "generated/section/launch.h"
#include "generated/section/sweep.h"
#include "runner/cli/launch_ranks.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/gpu_usage.h"
#include "runner/core/text/text.h"
#include "runner/cuda/cuda.h"

namespace runner::cli {
namespace {

using sections::sweep::Isolation;

/// The GPUs that trainings on this machine could use; none where this roux cannot use any.
std::vector<std::string> usable_gpus(const resolve::Recipe& recipe) {
  if (!cuda::has_driver() || !cuda::has_support()) return {};
  std::vector<std::string> visible = core::visible_gpu_names();
  if (visible.empty() || !recipe.launch->gpu_ids) return visible;
  std::vector<std::string> chosen;
  for (const std::int64_t id : *recipe.launch->gpu_ids) chosen.push_back(std::to_string(id));
  return chosen;
}

bool varies_device(const sweep::Sweep& sweep) {
  const auto& dimensions = sweep.space().dimensions();
  return std::any_of(dimensions.begin(), dimensions.end(),
                     [](const auto& dimension) { return dimension.name == "device"; });
}

std::string count_of(std::size_t gpus) { return core::counted(static_cast<std::int64_t>(gpus), "GPU", "GPUs"); }

std::string why_cpu(const resolve::Recipe& recipe) {
  return "the trials train on the CPU: with sweep.isolation " + std::string(to_text(recipe.sweep->isolation)) +
         " they share a process that uses it";
}

/// With `isolation: exec`, where trials do not get exactly a GPU each.
void tell_of_shares(const resolve::Recipe& recipe, std::size_t gpus, std::int64_t concurrent, std::int64_t each,
                    core::Diagnostics& diagnostics) {
  const core::Location& location = recipe.location("sweep.max_concurrent_trials");
  const std::int64_t fitting = static_cast<std::int64_t>(gpus) / each;
  const std::string trials = core::counted(concurrent, "trial", "trials") + " at a time";
  if (fitting == 0 || concurrent == fitting) return;
  if (concurrent > fitting) {
    diagnostics.notice(location, trials + " on " + count_of(gpus) + ": some share one",
                       "max_concurrent_trials: " + std::to_string(fitting) + " trains each on its own");
  } else {
    diagnostics.notice(location, trials + " on " + count_of(gpus) + ": some are left",
                       "max_concurrent_trials: " + std::to_string(fitting) + " trains on all of them");
  }
}

}  // namespace

bool trials_can_use_device(Session& session, const sweep::Sweep& sweep) {
  const resolve::Recipe& recipe = sweep.base();
  const bool is_gpu = recipe.device != "cpu" && recipe.device != "auto";
  if (!is_gpu || recipe.sweep->isolation == Isolation::kExec || varies_device(sweep)) return true;
  core::Diagnostics diagnostics;
  diagnostics.error(recipe.location("device"), "device is " + recipe.device + ", but " + why_cpu(recipe),
                    "set `sweep: {isolation: exec}`");
  session.show(diagnostics);
  session.exit_code = core::kExitUsage;
  return false;
}

sweep::GpuShares share_gpus(Session& session, const sweep::Sweep& sweep, std::int64_t concurrent) {
  const resolve::Recipe& recipe = sweep.base();
  if (recipe.device == "cpu" || varies_device(sweep)) return {{}, 1};
  const std::vector<std::string> gpus = usable_gpus(recipe);
  core::Diagnostics diagnostics;
  sweep::GpuShares shares({}, 1);
  if (recipe.sweep->isolation != Isolation::kExec) {
    if (!gpus.empty()) {
      diagnostics.notice(recipe.location("device"),
                         "this machine has " + count_of(gpus.size()) + ", but " + why_cpu(recipe),
                         "`sweep: {isolation: exec}` trains them on GPUs; `device: cpu` says that the CPU is meant");
    }
  } else if (recipe.device.find(':') == std::string::npos) {
    const int each = processes_per_machine(*recipe.launch);
    tell_of_shares(recipe, gpus.size(), concurrent, each, diagnostics);
    shares = {gpus, each};
  } else if (concurrent > 1) {
    diagnostics.notice(recipe.location("device"),
                       core::counted(concurrent, "trial", "trials") + " at a time share " + recipe.device,
                       "`device: cuda` spreads them over the GPUs of this machine");
  }
  session.show(diagnostics);
  return shares;
}

}  // namespace runner::cli
