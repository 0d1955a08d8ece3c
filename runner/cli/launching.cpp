#include "runner/cli/launching.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "generated/section/launch.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/process.h"
#include "runner/launch/rank_environment.h"
#include "runner/launch/supervisor.h"

namespace runner::cli {
namespace {

constexpr const char* kThreads = "OMP_NUM_THREADS";

/// The cores are shared out, unless somebody has said otherwise.
std::map<std::string, std::string> shared_out(const sections::launch::Config& launch) {
  if (launch.num_cpu_threads_per_process || std::getenv(kThreads) != nullptr) return {};
  const std::int64_t cores = std::thread::hardware_concurrency();
  return {{kThreads, std::to_string(std::max<std::int64_t>(1, cores / launch.num_processes))}};
}

std::vector<std::string> global_flags(const Session& session) {
  std::vector<std::string> flags = {core::own_program(), "--log-format", session.log_format};
  if (session.quiet) flags.emplace_back("--quiet");
  if (session.verbose) flags.emplace_back("--verbose");
  return flags;
}

}  // namespace

std::optional<core::RankPlace> rank_here(Session& session, const registry::Recipe& recipe) {
  const auto place = launch::rank_of_environment();
  if (!place) {
    session.fail(place.failure().message, place.failure().hint);
    return std::nullopt;
  }
  const std::int64_t asked = sections::launch::parse_config(recipe.at("launch")).num_processes;
  if (!place.value() || place.value()->size == asked) return place.value();
  const std::string size = std::to_string(place.value()->size);
  session.fail("WORLD_SIZE is " + size + " in the environment, but launch.num_processes is " + std::to_string(asked),
               "--set launch.num_processes=" + size + ", or unset RANK and WORLD_SIZE");
  return std::nullopt;
}

bool starts_ranks(const registry::Recipe& recipe) {
  const auto place = launch::rank_of_environment();
  return place && !place.value() && sections::launch::parse_config(recipe.at("launch")).num_processes > 1;
}

void launch_ranks(Session& session, const registry::Recipe& recipe, const engine::TrainRequest& request) {
  const auto launch = sections::launch::parse_config(recipe.at("launch"));
  launch::LaunchPlan plan;
  plan.num_processes = static_cast<int>(launch.num_processes);
  plan.max_restarts = request.smoke ? 0 : launch.max_restarts;  // nobody goes on with a smoke test
  plan.environment = shared_out(launch);
  plan.command = session.command_line;
  plan.command.front() = core::own_program();
  plan.command_to_go_on = [&session, &request](const std::string& run_dir) {
    std::vector<std::string> command = global_flags(session);
    command.insert(command.end(), {"resume", run_dir});
    if (!request.summary_json.empty()) command.insert(command.end(), {"--summary-json", request.summary_json});
    return command;
  };
  plan.store_command = [](int descriptor, int port) -> std::vector<std::string> {
    return {core::own_program(), "host-store", std::to_string(descriptor), std::to_string(port)};
  };
  plan.say = [](const std::string& line) { core::log_info(line); };
  const launch::LaunchEnd end = launch::supervise(plan);
  if (!end.message.empty()) session.fail(end.message, end.hint, end.status);
  session.exit_code = end.status;
}

}  // namespace runner::cli
