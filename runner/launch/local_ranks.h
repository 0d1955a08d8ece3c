#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/launch/failure_attribution.h"
#include "runner/launch/rank_process.h"
#include "runner/launch/supervisor.h"

namespace runner::launch {

/// Where the ranks meet.
struct Rendezvous {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
};

/// The ranks of this machine, from a start of the group to its end.
class LocalRanks {
 public:
  LocalRanks(const LaunchPlan& plan, const RankAssignment& assignment, const Rendezvous& rendezvous);
  ~LocalRanks();

  /// Adds the descriptors to poll.
  void add_to(std::vector<pollfd>& waiting) const;
  /// The ranks that ended since the last call. Kills the others when their grace period is over, and those that do not
  /// end although others are done.
  std::vector<RankEnd> take_ended();
  bool over() const;  ///< take_ended() has reported all ends
  void forward_signal(int signal);
  /// Starts the grace period of `grace_ms`, once.
  void begin_grace();
  /// Some rank, here or on another machine, is done: the others have `end_timeout_s`, from the first call on.
  void expect_end();
  /// Until the end of the grace period or of that time; -1 without one.
  int timeout_ms() const;
  /// The folder of the run, once rank 0 has reported it; "" before.
  std::string run_dir();
  std::string pids() const;  ///< `12, 13`

 private:
  class Report;
  std::unique_ptr<RankProcess> start(const LaunchPlan& plan, const RankAssignment& assignment,
                                     const Rendezvous& rendezvous, int local_rank);
  RankEnd end_of(std::size_t i) const;
  void kill_overdue();

  const RankAssignment assignment_;
  const std::int64_t grace_ns_;
  const double end_timeout_s_;
  std::unique_ptr<Report> report_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::vector<bool> told_;
  std::vector<std::string> overdue_;  ///< why it was killed, of each rank that did not end; "" for the others
  std::int64_t deadline_ns_ = 0, end_deadline_ns_ = 0;  ///< 0: none
  bool gave_up_ = false;
  int forwarded_signal_ = 0;
};

}  // namespace runner::launch
