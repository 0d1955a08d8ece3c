#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace runner::launch {

/// The ranks of one machine in one life of the group; a restart is the next life.
struct Share {
  int first_rank = 0, local_size = 1;
  int world_size = 1, machines = 1;
  int life = 0;         ///< counted from 0
  std::string run_dir;  ///< of the run to go on with; "" to begin
};

/// Of a launch over several machines; `launch` in the recipe says what each of these is.
struct MachinesPlan {
  int count = 1;
  int least = 1;            ///< that a restart goes on with
  std::optional<int> rank;  ///< of this one; nothing: whose address `address` is leads, the others count as they come
  std::string address;      ///< of the one that leads
  std::uint16_t port = 29'500;
  double timeout_s = 1800;     ///< for all of them to come
  double join_timeout_s = 30;  ///< for those that a restart lacks
  int monitor_interval_s = 1;
  std::vector<std::string> hosts;  ///< that the one that leads starts itself, itself first; none: somebody else does
  /// What is given to ssh to start machine `rank`.
  std::function<std::vector<std::string>(const std::string& host, int rank)> remote_command;
};

/// What to start, how often, and with what.
struct LaunchPlan {
  int num_processes = 1;  ///< of all machines together
  std::int64_t max_restarts = 0;
  std::map<std::string, std::string> environment;  ///< of each rank, beside what tells it which one it is
  /// Of a rank: the same program again, or what goes on with the run.
  std::function<std::vector<std::string>(const Share&)> command;
  /// Of the process at whose store the ranks meet; it serves the socket that listens at this descriptor and port.
  std::function<std::vector<std::string>(int descriptor, int port)> store_command;
  std::function<void(const std::string& line)> say;  ///< what a person should know
  std::int64_t grace_ms = 1'500;                     ///< for the others, after one has failed: all end within 2 s
  std::int64_t answer_ms = 5'000;                    ///< for other machines to say after that how theirs have ended
  MachinesPlan machines;
  std::string log_dir;           ///< folder of rank-K.log with all that a rank prints; "" for none
  int tee = 0;                   ///< of the other ranks: 1 standard output, 2 standard error, 3 both are shown
  std::string role = "default";  ///< in front of what is shown
  bool pin_cores = false;
};

/// How it ended, for a person; nothing to say where the ranks have said it themselves.
struct LaunchEnd {
  int status = 0;
  std::string message, hint;
};

/// Starts the ranks of this machine, and on the machine that leads the store that all of them meet at, and looks after
/// them until all have ended: a signal that we get is handed on to each of them once; when one fails the others, on all
/// machines, have a few seconds to end, and are killed then; what failed first is what is told. After a failure all are
/// started again, as often as the plan allows; who leads decides. A machine that is lost counts as failed, and one that
/// loses the leader ends. Nothing that was started outlives this process. RunError when one cannot be started.
LaunchEnd supervise(const LaunchPlan& plan);

}  // namespace runner::launch
