#include "runner/cli/launch_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "generated/section/launch.h"
#include "generated/section/loader.h"
#include "generated/section/training.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/process.h"
#include "runner/core/text/text.h"
#include "runner/launch/cpu_affinity.h"
#include "runner/launch/rank_environment.h"
#include "runner/launch/slurm_script.h"
#include "runner/launch/supervisor.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

constexpr const char* kThreads = "OMP_NUM_THREADS";

constexpr std::int64_t kPort = 29'500;

/// Processes of each machine of `hosts`; empty where none has slots, and all share them evenly.
std::vector<int> slots_of(const sections::launch::Config& launch) {
  std::vector<int> slots;
  if (!launch.hosts) return slots;
  const auto& hosts = *launch.hosts;
  if (std::none_of(hosts.begin(), hosts.end(), [](const auto& one) { return one.slots.has_value(); })) return slots;
  for (const auto& host : hosts) slots.push_back(static_cast<int>(host.slots.value_or(1)));
  return slots;
}

/// Additional environment of each rank. Cores are divided unless the number of threads is set, among as many as there
/// are on any machine: ranks must agree on their threads.
std::map<std::string, std::string> environment_of(const sections::launch::Config& launch) {
  std::map<std::string, std::string> variables;
  if (!launch.num_cpu_threads_per_process && std::getenv(kThreads) == nullptr) {
    const std::int64_t cores = std::thread::hardware_concurrency();
    variables[kThreads] = std::to_string(std::max<std::int64_t>(1, cores / processes_per_machine(launch)));
  }
  return variables;
}

launch::RendezvousOverride rendezvous_override(const sections::launch::Config& launch) {
  launch::RendezvousOverride requested;
  requested.address = launch.main_process_ip;
  if (launch.main_process_port) requested.port = static_cast<std::uint16_t>(*launch.main_process_port);
  return requested;
}

/// For a process that a launcher started: uses its own cores if it is bound to some, otherwise divides all.
void share_out_cores(int local_size) {
  const auto own = static_cast<int>(launch::own_cores_by_node().size());
  const int threads = sysconf(_SC_NPROCESSORS_ONLN) == own ? std::max(1, own / local_size) : own;
  setenv(kThreads, std::to_string(threads).c_str(), /*overwrite=*/0);
}

/// For a process that a launcher started: warns about keys that only our own supervisor follows.
void tell_what_does_nothing(const sections::launch::Config& launch, const launch::LaunchedRank& rank) {
  std::string keys;
  const auto add = [&](bool given, const char* key) {
    if (given) keys += (keys.empty() ? "launch." : ", ") + std::string(key);
  };
  add(launch.max_restarts > 0, "max_restarts");
  add(launch.log_dir.has_value(), "log_dir");
  add(launch.tee != 0, "tee");
  add(launch.enable_cpu_affinity, "enable_cpu_affinity");
  add(launch.hosts.has_value(), "hosts");
  add(launch.min_machines.has_value(), "min_machines");
  const std::string who = rank.launcher.empty() ? "the program that set RANK and WORLD_SIZE" : rank.launcher;
  if (!keys.empty()) core::log_warning(keys + " has no effect: " + who + " manages these processes");
}

/// Ranks that srun, mpirun or torchrun started write to one terminal: only rank 0 logs there; of a training each has
/// its own file in the run's `logs`.
void silence(const Session& session) {
  if (session.verbose || std::getenv(launch::kSupervised) != nullptr) return;
  core::LogOptions options = core::log_options();
  options.level = core::LogLevel::kError;
  core::configure_log(options);
}

std::vector<std::string> global_flags(const Session& session) {
  std::vector<std::string> flags = {core::own_program(), "--log-format", session.log_format};
  if (session.quiet) flags.emplace_back("--quiet");
  if (session.verbose) flags.emplace_back("--verbose");
  return flags;
}

/// The command for `ssh` to start another machine: this command, in this folder, with the rank of that machine. It gets
/// the number of processes, as `auto` could be another number there.
std::vector<std::string> remote_command(const Session& session, const launch::LaunchPlan& plan, const std::string& host,
                                        int rank) {
  const launch::MachinesPlan& machines = plan.machines;
  std::vector<std::string> words = session.command_line;
  words.front() = core::own_program();
  for (const auto& [flag, value] : {std::pair<const char*, std::string>{"--machine-rank", std::to_string(rank)},
                                    {"--num-processes", std::to_string(plan.num_processes)},
                                    {"--main-process-ip", machines.address},
                                    {"--main-process-port", std::to_string(machines.port)}}) {
    words.insert(words.end(), {flag, value});
  }
  const std::string folder = std::filesystem::current_path().string();
  return {"ssh", "-o", "BatchMode=yes",
          "--",  host, "cd " + launch::shell_word(folder) + " && exec " + launch::shell_line(words)};
}

/// The machines and the rank of this one. Fails the session when the recipe does not set them.
std::optional<launch::MachinesPlan> machines_of(Session& session, const sections::launch::Config& launch) {
  launch::MachinesPlan plan;
  plan.count = static_cast<int>(*launch.num_machines);
  plan.min_count = static_cast<int>(launch.min_machines.value_or(plan.count));
  plan.port = static_cast<std::uint16_t>(launch.main_process_port.value_or(kPort));
  plan.timeout_s = launch.timeout;
  plan.join_timeout_s = launch.join_timeout;
  plan.monitor_interval_s = static_cast<int>(launch.monitor_interval);
  if (launch.machine_rank) plan.rank = static_cast<int>(*launch.machine_rank);
  if (plan.count == 1) return plan;
  if (launch.hosts) {
    if (!plan.rank) plan.rank = 0;
    if (plan.rank == 0) {
      for (const auto& host : *launch.hosts) plan.hosts.push_back(host.host);
      plan.slots = slots_of(launch);
    }
    plan.address = launch.main_process_ip.value_or(launch.hosts->front().host);
    return plan;
  }
  const std::string with = "with launch.num_machines " + std::to_string(plan.count) + ", ";
  if (!launch.main_process_ip) {
    session.fail(with + "launch.main_process_ip must be set to the address of machine 0",
                 "add --main-process-ip ADDRESS, the same on all machines, or list them in launch.hosts");
    return std::nullopt;
  }
  plan.address = *launch.main_process_ip;
  if (plan.rank || launch.rdzv_backend == sections::launch::RdzvBackend::kC10d) return plan;
  session.fail(with + "launch.machine_rank must be set",
               "add --machine-rank 0 on the machine with main_process_ip, 1 on the next; or --rdzv-backend c10d, "
               "which assigns ranks in the order of arrival");
  return std::nullopt;
}

/// The command of a rank: this command again, or after a restart one that resumes the run.
std::vector<std::string> rank_command(const Session& session, const engine::TrainRequest& request,
                                      const sections::launch::Config& launch,
                                      const launch::RankAssignment& assignment) {
  std::vector<std::string> command;
  if (assignment.run_dir.empty()) {
    command = session.command_line;
    command.front() = core::own_program();
  } else {
    command = global_flags(session);
    command.insert(command.end(), {"resume", assignment.run_dir});
    if (!request.summary_json.empty()) command.insert(command.end(), {"--summary-json", request.summary_json});
  }
  if (assignment.world_size == launch.num_processes) return command;
  // A machine is missing: the global batch stays, the share of each process is derived again.
  const std::string size = std::to_string(assignment.world_size);
  command.insert(command.end(), {"--num-processes", size, "--num-machines", std::to_string(assignment.machines)});
  if (launch.hosts) command.insert(command.end(), {"--set", "launch.hosts=null"});  // the missing one is among them
  if (assignment.run_dir.empty()) return command;
  command.insert(command.end(),
                 {"--allow-change", "launch.num_processes", "--set", "~training.gradient_accumulation_steps"});
  return command;
}

/// `max_restarts` and `command` as in LaunchPlan; no `max_restarts` for work that cannot be resumed.
void supervise_ranks(Session& session, const resolve::Recipe& recipe, const launch::MachinesPlan& machines,
                     std::optional<std::int64_t> max_restarts,
                     const std::function<std::vector<std::string>(const launch::RankAssignment&)>& command) {
  const auto& launch = *recipe.launch;
  launch::LaunchPlan plan;
  plan.num_processes = static_cast<int>(launch.num_processes);
  plan.max_restarts = max_restarts.value_or(0);
  plan.is_resumable = max_restarts.has_value();
  plan.environment = environment_of(launch);
  plan.command = command;
  plan.store_command = [](int descriptor, int port) -> std::vector<std::string> {
    return {core::own_program(), "host-store", std::to_string(descriptor), std::to_string(port)};
  };
  plan.say = [](const std::string& line) { core::log_info(line); };
  plan.machines = machines;
  plan.machines.remote_command = [&](const std::string& host, int rank) {
    return remote_command(session, plan, host, rank);
  };
  plan.end_timeout_s = launch.timeout;
  plan.log_dir = launch.log_dir.value_or("");
  plan.tee = static_cast<int>(launch.tee);
  plan.role = launch.role;
  plan.pin_cores = launch.enable_cpu_affinity;
  const launch::LaunchEnd end = launch::supervise(plan);
  if (!end.message.empty()) session.fail_in_lines(end.message, end.hint, end.status);
  session.exit_code = end.status;
}

}  // namespace

int processes_per_machine(const sections::launch::Config& launch) {
  const std::vector<int> slots = slots_of(launch);
  if (!slots.empty()) return *std::max_element(slots.begin(), slots.end());
  return static_cast<int>((launch.num_processes - 1) / *launch.num_machines + 1);
}

std::optional<core::RankInfo> rank_of_process(Session& session, const resolve::Recipe& recipe) {
  const auto& launch = *recipe.launch;
  const auto started = launch::rank_from_environment(rendezvous_override(launch));
  if (!started) {
    session.fail(started.failure().message, started.failure().hint);
    return std::nullopt;
  }
  if (!started.value()) return std::nullopt;
  const launch::LaunchedRank& rank = *started.value();
  if (rank.info.size == launch.num_processes) {
    if (!launch::another_process_reports()) tell_what_does_nothing(launch, rank);
    if (!rank.launcher.empty() && !launch.num_cpu_threads_per_process) share_out_cores(rank.info.local_size);
    return rank.info;
  }
  const std::string size = std::to_string(rank.info.size);
  session.fail(rank.size_variable + " is " + size + " in the environment, but launch.num_processes is " +
                   std::to_string(launch.num_processes),
               "--num-processes " + size +
                   (rank.launcher.empty() ? ", or unset RANK and WORLD_SIZE"
                                          : ", or start that many processes with " + rank.launcher));
  return std::nullopt;
}

std::optional<core::RankInfo> rank_at_work(Session& session, const resolve::Recipe& recipe) {
  auto rank = rank_of_process(session, recipe);
  if (!rank || rank->size == 1) return std::nullopt;
  if (rank->rank > 0) silence(session);
  return rank;
}

bool can_all_read(Session& session, const resolve::Recipe& recipe, const std::string& flag, const std::string& path) {
  std::error_code ignored;
  const std::int64_t processes = recipe.launch->num_processes;
  if (processes == 1 || path.empty() || !std::filesystem::exists(path, ignored) ||
      std::filesystem::is_regular_file(path, ignored)) {
    return true;
  }
  session.fail(
      flag + " " + path + " is no file on a disk, and each of " + std::to_string(processes) + " processes reads it",
      "write its content to a file, or add --num-processes 1");
  return false;
}

bool starts_ranks(const resolve::Recipe& recipe) {
  const auto& launch = *recipe.launch;
  const auto started = launch::rank_from_environment(rendezvous_override(launch));
  return started && !started.value() && launch.num_processes > 1;
}

void take_environment_of_ranks(const resolve::Recipe& recipe) {
  for (const auto& [name, value] : environment_of(*recipe.launch)) setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
}

void note_growing_batch(const Session& session, const resolve::Recipe& recipe) {
  const auto& training = *recipe.training;
  const std::int64_t processes = recipe.launch->num_processes;
  const bool is_split = recipe.loader->split_batches;
  const core::Location& global = recipe.location("training.global_batch_size");
  const bool is_written = global.known() && global.source->kind != core::Source::Kind::kDefault;
  if (processes == 1 || is_split || is_written || !training.global_batch_size || launch::another_process_reports())
    return;
  const std::string one = std::to_string(*training.global_batch_size / processes);
  core::Diagnostics diagnostics;
  diagnostics.notice(recipe.location("training.micro_batch_size"),
                     "the batch of a step is " + std::to_string(*training.global_batch_size) + " with " +
                         std::to_string(processes) + " processes, but " + one + " with one",
                     "training.global_batch_size: " + one + " keeps it independent of the number of processes");
  session.show(diagnostics);
}

void note_unread_variables(const Session& session) {
  constexpr std::size_t kShownMax = 4;
  if (launch::another_process_reports()) return;
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("FSDP_") || text.starts_with("ACCELERATE_") || text.starts_with("PARALLELISM_CONFIG_"))
      names.emplace_back(text.substr(0, text.find('=')));
  }
  if (names.empty()) return;
  std::sort(names.begin(), names.end());
  core::Diagnostics diagnostics;
  diagnostics.notice(
      {},
      core::joined_first(names, kShownMax) + " of the environment" + (names.size() == 1 ? " is" : " are") + " not read",
      "write fsdp: {...} or deepspeed: {...} in the recipe, or `roux config import` Accelerate's file");
  session.show(diagnostics);
}

std::optional<std::string> slurm_batch(Session& session, const resolve::Recipe& recipe) {
  constexpr double kMarginS = 120;
  const auto& launch = *recipe.launch;
  if (recipe.was_automatic("launch.num_processes")) {
    session.fail("launch.num_processes is auto, but the GPUs of the machines in the job are not known here",
                 "set the number of processes on all machines: --num-processes N");
    return std::nullopt;
  }
  launch::SlurmJob job;
  job.name = recipe.run_name;
  job.folder = std::filesystem::current_path().string();
  job.num_machines = static_cast<int>(*launch.num_machines);
  job.num_processes = static_cast<int>(launch.num_processes);
  job.threads = launch.num_cpu_threads_per_process;
  job.time_limit_s = launch.time_limit;
  job.margin_s = launch.save_margin.value_or(kMarginS);
  job.command = {core::own_program()};
  for (std::size_t i = 1; i < session.command_line.size(); ++i) {
    const std::string& word = session.command_line[i];
    if (word == "--emit") ++i;
    if (word.starts_with("--emit")) continue;
    job.command.push_back(word);
  }
  return launch::slurm_script(job);
}

void launch_ranks(Session& session, const resolve::Recipe& recipe, const engine::TrainRequest& request) {
  const auto& launch = *recipe.launch;
  const auto machines = machines_of(session, launch);
  if (!machines) return;
  note_growing_batch(session, recipe);
  note_unread_variables(session);
  // A smoke test is not resumed.
  supervise_ranks(
      session, recipe, *machines, request.smoke ? 0 : launch.max_restarts,
      [&](const launch::RankAssignment& assignment) { return rank_command(session, request, launch, assignment); });
}

void launch_ranks(Session& session, const resolve::Recipe& recipe) {
  const auto machines = machines_of(session, *recipe.launch);
  if (!machines) return;
  std::vector<std::string> command = session.command_line;
  command.front() = core::own_program();
  supervise_ranks(session, recipe, *machines, std::nullopt, [&](const launch::RankAssignment&) { return command; });
}

int status_of(const core::RunError& error) {
  const bool is_told = error.exit_code() != core::kExitPeerLost || std::getenv(launch::kSupervised) != nullptr;
  return is_told ? error.exit_code() : core::kExitFailed;
}

}  // namespace runner::cli
