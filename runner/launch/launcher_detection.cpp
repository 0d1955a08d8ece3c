#include "runner/launch/launcher_detection.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "runner/core/error.h"
#include "runner/launch/variables.h"

namespace runner::launch {
namespace {

/// The variables of a launcher.
struct Launcher {
  const char* name;
  const char* is_there;  ///< variable that only its processes have
  const char *rank, *size, *local_rank, *local_size;
  const char *job, *step;  ///< identify this group; null if the launcher has none
};

// In this order: processes of srun may have the variables of PMI, too. A batch script has SLURM_PROCID, but is not a
// step; each restart of a job is its own step.
constexpr Launcher kLaunchers[] = {
    {"srun", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID",
     "SLURM_RESTART_COUNT"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", nullptr},
    {"mpiexec", "PMI_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, nullptr},
};
constexpr const char* kHint = "the launcher of this process sets it";

// Below the ephemeral ports.
constexpr std::uint32_t kFirstPort = 20'000, kPorts = 10'000;
constexpr std::uint16_t kPortWithoutJob = 29'500;

const Launcher* launcher_here() {
  const auto found = std::find_if(std::begin(kLaunchers), std::end(kLaunchers), [](const Launcher& launcher) {
    return set_variable(launcher.is_there) != nullptr && set_variable(launcher.size) != nullptr;
  });
  return found == std::end(kLaunchers) ? nullptr : found;
}

/// FNV-1a: the same on every host.
std::uint32_t hash_of(const std::string& text) {
  std::uint32_t hash = 2'166'136'261u;
  for (const unsigned char c : text) hash = (hash ^ c) * 16'777'619u;
  return hash;
}

std::uint16_t port_of_job(const Launcher& launcher) {
  std::string job;
  for (const char* name : {launcher.job, launcher.step}) {
    const char* value = name != nullptr ? set_variable(name) : nullptr;
    job += value != nullptr ? std::string(value) + "." : "";
  }
  return job.empty() ? kPortWithoutJob : static_cast<std::uint16_t>(kFirstPort + hash_of(job) % kPorts);
}

int local_size_of(const Launcher& launcher, int size) {
  if (launcher.local_size != nullptr && set_variable(launcher.local_size) != nullptr) {
    return number_in(launcher.local_size, 1, size, kHint);
  }
  const char* counts = set_variable("SLURM_STEP_TASKS_PER_NODE");
  const char* node = set_variable("SLURM_NODEID");
  if (counts == nullptr || node == nullptr) return size;
  const int here = tasks_of_node(counts, number_in("SLURM_NODEID", 0, kRanksMax, kHint)).value_or(size);
  if (here >= 1 && here <= size) return here;
  throw core::RunError(std::string("SLURM_STEP_TASKS_PER_NODE is \"") + counts +
                           "\" in the environment, which does not match " + std::to_string(size) + " processes",
                       kHint, core::kExitUsage);
}

std::string address_of(const RendezvousOverride& requested, const core::RankInfo& info, const Launcher& launcher) {
  if (const char* address = set_variable("MASTER_ADDR")) return address;
  if (requested.address) return *requested.address;
  if (info.local_size == info.size) return "127.0.0.1";
  for (const char* hosts : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (const char* list = set_variable(hosts)) return first_host(list);
  }
  throw core::RunError(
      std::string(launcher.name) + " started processes on several machines without the address of rank 0",
      "add --main-process-ip ADDRESS or set MASTER_ADDR, the same on all machines", core::kExitUsage);
}

}  // namespace

core::Result<std::optional<LaunchedRank>> rank_of_launcher(const RendezvousOverride& requested) {
  const Launcher* launcher = launcher_here();
  if (launcher == nullptr) return std::optional<LaunchedRank>();
  return core::attempt([&] {
    core::RankInfo info;
    info.size = number_in(launcher->size, 1, kRanksMax, kHint);
    if (info.size == 1) return std::optional<LaunchedRank>();
    info.rank = number_in(launcher->rank, 0, info.size - 1, kHint);
    info.local_size = local_size_of(*launcher, info.size);
    const bool says_local = set_variable(launcher->local_rank) != nullptr;
    info.local_rank = says_local ? number_in(launcher->local_rank, 0, info.size - 1, kHint) : info.rank;
    info.master_addr = address_of(requested, info, *launcher);
    info.master_port = set_variable("MASTER_PORT") != nullptr
                           ? static_cast<std::uint16_t>(number_in("MASTER_PORT", 1, kPortMax, kHint))
                           : requested.port.value_or(port_of_job(*launcher));
    info.hosts_store = info.rank == 0;
    return std::optional<LaunchedRank>({info, launcher->name, launcher->size});
  });
}

std::optional<std::pair<std::string, std::string>> size_from_launcher() {
  const Launcher* launcher = launcher_here();
  const std::string size = launcher != nullptr ? set_variable(launcher->size) : "1";
  if (size == "1") return std::nullopt;
  return std::pair<std::string, std::string>(launcher->size, size);
}

std::string first_host(const std::string& slurm_list) {
  const std::size_t open = slurm_list.find('['), comma = slurm_list.find(',');
  if (open == std::string::npos || comma < open) return slurm_list.substr(0, comma);
  const std::size_t end = slurm_list.find_first_of(",-]", open);
  const std::size_t close = slurm_list.find(']', open);
  const std::size_t after = close == std::string::npos ? close : slurm_list.find(',', close);
  const std::string tail = close == std::string::npos ? "" : slurm_list.substr(close + 1, after - close - 1);
  return slurm_list.substr(0, open) + slurm_list.substr(open + 1, end - open - 1) + tail;
}

std::optional<int> tasks_of_node(const std::string& slurm_counts, int node) {
  std::istringstream groups(slurm_counts);
  for (std::string group; std::getline(groups, group, ',');) {
    const std::size_t times = group.find("(x");
    node -= times == std::string::npos ? 1 : std::atoi(group.c_str() + times + 2);
    if (node < 0) return std::atoi(group.c_str());
  }
  return std::nullopt;
}

}  // namespace runner::launch
