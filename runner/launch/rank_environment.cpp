#include "runner/launch/rank_environment.h"

#include <unistd.h>

#include <cstdlib>

#include "runner/launch/launcher_detection.h"
#include "runner/launch/variables.h"

namespace runner::launch {
namespace {

constexpr const char* kHint =
    "set all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; unset RANK and WORLD_SIZE to train in one process";

const char* variable(const char* name) { return set_variable(name); }

/// An integer from `least` to `most`; `otherwise` if the variable is not set.
int number(const char* name, std::int64_t least, std::int64_t most, std::optional<int> otherwise) {
  if (variable(name) == nullptr && otherwise) return *otherwise;
  if (variable(name) == nullptr)
    throw core::RunError(std::string(name) + " is not set, but RANK and WORLD_SIZE are", kHint, core::kExitUsage);
  return number_in(name, least, most, kHint);
}

/// RANK or WORLD_SIZE without the other one: forgotten, or left from another job. Harmless if the value is right.
void check_half(const char* name, const char* other, int holds, const std::string& launcher) {
  const char* said = variable(name);
  if (said == nullptr || said == std::to_string(holds)) return;
  const std::string text = std::string(name) + " is \"" + said + "\" in the environment, but ";
  throw core::RunError(
      text + (launcher.empty() ? other + std::string(" is not set") : launcher + " sets " + std::to_string(holds)),
      kHint, core::kExitUsage);
}

core::RankInfo place_in_variables() {
  core::RankInfo info;
  info.size = number("WORLD_SIZE", 1, kRanksMax, std::nullopt);
  info.rank = number("RANK", 0, info.size - 1, std::nullopt);
  info.local_size = number("LOCAL_WORLD_SIZE", 1, info.size, info.size);
  info.local_rank = number("LOCAL_RANK", 0, info.local_size - 1, info.rank);
  const char* address = variable("MASTER_ADDR");
  if (address == nullptr && info.size > 1) {
    throw core::RunError("MASTER_ADDR is not set, but RANK and WORLD_SIZE are", kHint, core::kExitUsage);
  }
  if (address != nullptr) info.master_addr = address;
  info.master_port =
      static_cast<std::uint16_t>(number("MASTER_PORT", 1, kPortMax, info.size > 1 ? std::nullopt : std::optional(0)));
  const char* agent = variable("TORCHELASTIC_USE_AGENT_STORE");
  info.hosts_store = info.rank == 0 && !(agent != nullptr && std::string(agent) == "True");
  return info;
}

}  // namespace

core::Result<std::optional<LaunchedRank>> rank_from_environment(const RendezvousOverride& requested) {
  if (variable("RANK") != nullptr && variable("WORLD_SIZE") != nullptr) {
    return core::attempt([] { return std::optional<LaunchedRank>({place_in_variables(), "", "WORLD_SIZE"}); });
  }
  auto started = rank_of_launcher(requested);
  if (!started) return started;
  return core::attempt([&] {
    const LaunchedRank alone, &known = started.value() ? *started.value() : alone;
    check_half("RANK", "WORLD_SIZE", known.info.rank, known.launcher);
    check_half("WORLD_SIZE", "RANK", known.info.size, known.launcher);
    return started.value();
  });
}

std::optional<std::pair<std::string, std::string>> size_in_environment() {
  if (const char* size = variable("WORLD_SIZE"); size != nullptr && variable("RANK") != nullptr) {
    return std::pair<std::string, std::string>("WORLD_SIZE", size);
  }
  return size_from_launcher();
}

bool is_above_rank_0() {
  const auto started = rank_from_environment({"127.0.0.1", std::uint16_t{1}});  // the rendezvous does not matter here
  return started && started.value() && started.value()->info.rank > 0;
}

bool another_process_reports() { return variable(kSupervised) != nullptr || is_above_rank_0(); }

std::map<std::string, std::string> environment_of(const core::RankInfo& info) {
  return {{"RANK", std::to_string(info.rank)},
          {"WORLD_SIZE", std::to_string(info.size)},
          {"LOCAL_RANK", std::to_string(info.local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(info.local_size)},
          {"MASTER_ADDR", info.master_addr},
          {"MASTER_PORT", std::to_string(info.master_port)},
          {"TORCHELASTIC_USE_AGENT_STORE", info.hosts_store ? "False" : "True"}};
}

void report_run(const std::string& run_dir) {
  const char* descriptor = variable(kReportDescriptor);
  if (descriptor == nullptr) return;
  const std::string line = run_dir + "\n";
  // If the supervisor is gone, this process ends, too.
  [[maybe_unused]] const ssize_t written = write(std::atoi(descriptor), line.data(), line.size());
}

}  // namespace runner::launch
