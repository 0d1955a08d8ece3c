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

/// The other machines of a launch, as the one that leads sees them; none where there is one machine.
class NodeAgents {
 public:
  /// Listens where they are to come. RunError when the port is taken, naming by whom.
  explicit NodeAgents(const LaunchPlan& plan);
  ~NodeAgents();

  /// Waits for those that are not there, starting them where the plan lists hosts; with the plan's patience. The end of
  /// the launch when too few came, when one of them does not fit, or when a signal came.
  std::optional<LaunchEnd> gather(const Signals& signals, double patience_s);
  /// The share of this machine among those that are there.
  Share deal(int life, const std::string& run_dir);
  /// Tells each of the others its share.
  void start(std::uint16_t store_port);

  void add_to(std::vector<pollfd>& waiting) const;
  std::vector<RankEnd> look();  ///< ends of ranks and losses of machines that were heard of since this was asked last
  bool over() const;            ///< all ranks of the others have ended, as look() told
  /// A rank failed somewhere: theirs have a few seconds to end. A machine that does not say so soon after is lost.
  void stop();
  int timeout_ms() const;  ///< until then; -1 when there is no hurry
  void end(const LaunchEnd& end);

 private:
  struct Machine {
    AgentConnection link;
    std::string host;
    Share share;
    int ended = 0;  ///< of its ranks, in this life
    std::string name(int rank) const { return "machine " + std::to_string(rank) + " (" + host + ")"; }
  };
  int slots(int machine) const;
  void start_missing();
  void accept_one();
  std::optional<LaunchEnd> welcome(AgentConnection link, const Hello& hello);
  std::optional<LaunchEnd> hear_newcomers();
  std::optional<LaunchEnd> look_at_remote_starts();
  void forget_lost();
  bool complete() const;
  LaunchEnd absent(double patience_s) const;

  const LaunchPlan& plan_;
  std::unique_ptr<core::ListeningSocket> socket_;
  std::vector<AgentConnection> newcomers_;              ///< that have said nothing yet
  std::map<int, Machine> machines_;                     ///< by their rank
  std::int64_t deadline_ns_ = 0;                        ///< for their word about how their ranks ended; 0: none
  std::map<int, std::unique_ptr<RankProcess>> remote_;  ///< ssh to them, by their rank
};

/// What this machine says of itself.
Hello own_hello(const LaunchPlan& plan);

}  // namespace runner::launch
