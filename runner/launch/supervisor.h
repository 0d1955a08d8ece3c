#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace runner::launch {

/// What to start, how often, and with what.
struct LaunchPlan {
  int num_processes = 1;
  std::int64_t max_restarts = 0;
  std::map<std::string, std::string> environment;  ///< of each rank, beside what tells it which one it is
  std::vector<std::string> command;                ///< of a rank: the same program again
  /// The same for a group that goes on with a run; "" when the one before died before it had one.
  std::function<std::vector<std::string>(const std::string& run_dir)> command_to_go_on;
  /// Of the process at whose store the ranks meet; it serves the socket that listens at this descriptor and port.
  std::function<std::vector<std::string>(int descriptor, int port)> store_command;
  std::function<void(const std::string& line)> say;  ///< what a person should know
  std::int64_t grace_ms = 4'000;                     ///< for the others, after one has failed
};

/// How it ended, for a person; nothing to say where the ranks have said it themselves.
struct LaunchEnd {
  int status = 0;
  std::string message, hint;
};

/// Starts the ranks and the store that they meet at, and looks after them until all have ended: a signal that we get is
/// handed on to each of them once; when one fails the others have a few seconds to end, and are killed then; what
/// failed first is what is told. After a failure all are started again, as often as the plan allows. Nothing that was
/// started outlives this process. RunError when one cannot be started.
LaunchEnd supervise(const LaunchPlan& plan);

}  // namespace runner::launch
