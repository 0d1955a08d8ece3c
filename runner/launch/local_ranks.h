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

/// Where ranks meet, as they are told.
struct MeetingPoint {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
};

/// The ranks of this machine in one life of the group, from their start to their end.
class LocalRanks {
 public:
  LocalRanks(const LaunchPlan& plan, const Share& share, const MeetingPoint& meeting);
  ~LocalRanks();

  /// What is to be polled for news of them.
  void add_to(std::vector<pollfd>& waiting) const;
  /// Those that ended since this was asked last. Kills what is left when its time is up.
  std::vector<RankEnd> look();
  bool over() const;  ///< all have ended, as look() told
  void hand_on(int signal);
  /// The ranks have `grace_ms` from now on, once.
  void begin_grace();
  /// Until their time is up; -1 when they have all there is.
  int timeout_ms() const;
  /// The folder of the run, once rank 0 of this machine has told it; "" before.
  std::string run_dir();
  std::string pids() const;  ///< `12, 13`

 private:
  class Report;
  std::unique_ptr<RankProcess> start(const LaunchPlan& plan, const Share& share, const MeetingPoint& meeting,
                                     int local_rank);
  RankEnd end_of(const RankProcess& process, int rank) const;

  const Share share_;
  const std::int64_t grace_ns_;
  std::unique_ptr<Report> report_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::vector<bool> told_;
  std::int64_t deadline_ns_ = 0;
  bool gave_up_ = false;
  int handed_on_ = 0;
};

}  // namespace runner::launch
