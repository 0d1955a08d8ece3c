#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace runner::launch {

/// The ranks of one machine, from a start or restart of the group to its end.
struct RankAssignment {
  int first_rank = 0, local_size = 1;
  int world_size = 1, machines = 1;
  int restart_count = 0;  ///< 0: the first start
  std::string run_dir;    ///< of the run to resume; "" for a new one
};

/// The machines of a launch; see the section `launch` of a recipe.
struct MachinesPlan {
  int count = 1;
  int min_count = 1;        ///< minimum to restart with
  std::optional<int> rank;  ///< of this one; nothing: the owner of `address` leads, the others are numbered on arrival
  std::string address;      ///< of the leader
  std::uint16_t port = 29'500;
  double timeout_s = 1800;     ///< for all of them to join
  double join_timeout_s = 30;  ///< for missing ones at a restart
  int monitor_interval_s = 1;
  std::vector<std::string> hosts;  ///< that the leader starts, itself first; empty: they are started otherwise
  std::vector<int> slots;          ///< processes of each machine, for the leader; empty: shared evenly
  /// The command that starts machine `rank`.
  std::function<std::vector<std::string>(const std::string& host, int rank)> remote_command;
};

/// What to start, how often, and how.
struct LaunchPlan {
  int num_processes = 1;  ///< on all machines
  std::int64_t max_restarts = 0;
  std::map<std::string, std::string> environment;  ///< of each rank, in addition to its rank variables
  /// The command of a rank: the same command again, or one that resumes the run.
  std::function<std::vector<std::string>(const RankAssignment&)> command;
  /// The command of the process with the rendezvous store; it serves the listening socket at this descriptor and port.
  std::function<std::vector<std::string>(int descriptor, int port)> store_command;
  std::function<void(const std::string& line)> say;  ///< logs a line
  std::int64_t grace_ms = 1'500;                     ///< grace period of the others after a failure: all end within 2 s
  double end_timeout_s = 1800;                       ///< for the other ranks to end once one is done
  std::int64_t answer_ms = 5'000;                    ///< then for other machines to report how their ranks ended
  MachinesPlan machines;
  std::string log_dir;           ///< folder of rank-K.log with the output of each rank; "" for none
  int tee = 0;                   ///< of the other ranks: 1 standard output, 2 standard error, 3 both are shown
  std::string role = "default";  ///< prefix of shown lines
  bool pin_cores = false;
  bool is_resumable = true;  ///< false: ranks that a signal ended are 128 + the signal, as one process would be
};

/// How a launch ended; no message if the ranks have printed it themselves.
struct LaunchEnd {
  int status = 0;
  std::string message, hint;
};

/// Starts the ranks of this machine, and on the leader the rendezvous store, and supervises them until all have ended.
/// Each signal is forwarded to each rank once. When a rank fails, the others on all machines have a grace period to
/// end, and are then killed; the first failure is reported. After a failure the leader restarts all ranks, as often as
/// the plan allows. When some rank is done and another one does not end within `end_timeout_s`, that one is killed and
/// reported; rank 0, which may have more to write, only if it is stopped (SIGSTOP). A lost machine counts as failed,
/// and a machine that loses the leader ends. No process that was started outlives this one. RunError when one cannot be
/// started.
LaunchEnd supervise(const LaunchPlan& plan);

}  // namespace runner::launch
