#include "runner/train/observe/program_environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "runner/artifact/provenance/secrets.h"
#include "runner/core/text/url_password.h"

namespace runner::train {
namespace {

// What torchrun, mpirun, mpiexec, srun and roux's own supervisor tell a rank.
constexpr std::array<std::string_view, 10> kOfRanks = {"RANK",         "WORLD_SIZE",  "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
                                                       "GROUP_RANK",   "MASTER_ADDR", "MASTER_PORT", "SLURM_LOCALID",
                                                       "SLURM_PROCID", "SLURM_NODEID"};
constexpr std::array<std::string_view, 8> kBeginningsOfRanks = {
    "TORCHELASTIC_",   "OMPI_COMM_WORLD_",      "PMI_", "PMIX_", "MPI_LOCAL", "SLURM_STEP_",
    "ROUX_SUPERVISED", "ROUX_REPORT_DESCRIPTOR"};

bool is_of_rank(std::string_view name) {
  return std::find(kOfRanks.begin(), kOfRanks.end(), name) != kOfRanks.end() ||
         std::any_of(kBeginningsOfRanks.begin(), kBeginningsOfRanks.end(),
                     [name](std::string_view beginning) { return name.starts_with(beginning); });
}

/// The variables that secrets of the recipe refer to, as `${env:NAME}`.
void find_secrets(const core::Node& node, std::set<std::string>& names) {
  static constexpr std::string_view kBeginning = "${env:";
  for (const core::HistoryStep& step : node.history()) {
    if (step.origin != core::Origin::kEnvironment || !node.has_origin(core::Origin::kSecret)) continue;
    const std::string name = step.of.substr(std::min(kBeginning.size(), step.of.size()));
    names.insert(name.substr(0, name.find_first_of(":}")));
  }
  for (const core::Node& item : node.items()) find_secrets(item, names);
  for (const auto& entry : node.entries()) find_secrets(entry.value, names);
}

}  // namespace

std::map<std::string, std::string> program_environment(const core::Node& recipe) {
  std::set<std::string> secrets;
  find_secrets(recipe, secrets);
  std::map<std::string, std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text = *one;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
    const bool is_secret =
        secrets.contains(name) || artifact::sounds_secret(name) || !core::find_url_passwords(value).empty();
    if (!is_secret && !is_of_rank(name)) variables.emplace(name, value);
  }
  return variables;
}

}  // namespace runner::train
