#pragma once

#include <poll.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/platform/listening_socket.h"
#include "runner/launch/agent_connection.h"
#include "runner/launch/messages.h"
#include "runner/launch/rank_process.h"
#include "runner/launch/signals.h"
#include "runner/launch/supervisor.h"

namespace runner::launch {

/// The other machines of a launch, as the leader sees them; empty for one machine.
class NodeAgents {
 public:
  /// Listens for them. RunError when the port is in use, naming the process.
  explicit NodeAgents(const LaunchPlan& plan);
  ~NodeAgents();

  /// Waits up to `timeout_s` for missing machines; starts them if the plan lists hosts. Returns the end of the launch
  /// when too few joined, when one does not fit, or on a signal.
  std::optional<LaunchEnd> gather(const Signals& signals, double timeout_s);
  /// Assigns ranks to the machines that joined; returns those of this one.
  RankAssignment assign_ranks(int restart_count, const std::string& run_dir);
  /// Sends each of the others its assignment.
  void start(std::uint16_t store_port);

  void add_to(std::vector<pollfd>& waiting) const;
  std::vector<RankEnd> take_ended();  ///< ends of ranks and losses of machines since the last call
  bool over() const;                  ///< take_ended() has reported all ends
  void expect_end();                  ///< tells them: LocalRanks::expect_end()
  /// After a failure: asks for the end of their ranks. A machine that does not report it within seconds is lost.
  void stop();
  int timeout_ms() const;  ///< until that limit; -1 without one
  void end(const LaunchEnd& end);

 private:
  struct Machine {
    AgentConnection link;
    std::string host;
    RankAssignment assignment;
    int ended = 0;  ///< of its ranks, since the last start
    std::string name(int rank) const { return "machine " + std::to_string(rank) + " (" + host + ")"; }
  };
  int slots(int machine) const;
  void start_missing();
  void accept_one();
  std::optional<LaunchEnd> admit(AgentConnection link, const Hello& hello);
  std::optional<LaunchEnd> read_newcomers();
  std::optional<LaunchEnd> check_remote_starts();
  void forget_lost();
  bool complete() const;
  LaunchEnd absent(double timeout_s) const;

  const LaunchPlan& plan_;
  std::unique_ptr<core::ListeningSocket> socket_;
  std::vector<AgentConnection> newcomers_;              ///< that have not sent a message yet
  std::map<int, Machine> machines_;                     ///< by rank
  std::int64_t deadline_ns_ = 0;                        ///< for the report of how their ranks ended; 0: none
  std::map<int, std::unique_ptr<RankProcess>> remote_;  ///< ssh processes, by rank
};

/// The message with which this machine joins.
Hello own_hello(const LaunchPlan& plan);

}  // namespace runner::launch
