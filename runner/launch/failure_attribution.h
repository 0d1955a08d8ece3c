#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::launch {

/// How a rank, the store or a machine ended.
struct RankEnd {
  static constexpr int kNoRank = -1;  ///< the store, or a machine

  int rank = kNoRank;
  std::string who;                    ///< `rank 1 (process 4711)`
  int status = 0;                     ///< exit status, or 128 + the signal that ended it
  int signal = 0;                     ///< that ended it
  int forwarded_signal = 0;           ///< signal that its supervisor received and forwarded to it
  bool killed_after_failure = false;  ///< its supervisor killed it after others failed
  bool overdue = false;               ///< its supervisor killed it because it did not end although others were done
  std::string words;                  ///< its last output: RankProcess::exit_message()
  std::string text = {};              ///< the whole message, if it is not made of status and words

  bool is_regular() const;  ///< done, or stopped and resumable
  bool failed() const;      ///< by itself: not done, not resumable, not killed because of others
  bool ended_by_forwarded_signal() const { return forwarded_signal != 0 && status == 128 + forwarded_signal; }
  bool interrupted_twice() const;  ///< by a second SIGINT
  std::string message() const;     ///< how it ended, for the user
};

core::Node to_node(const RankEnd& end);
RankEnd rank_end_of(const core::Node& node);

/// Finds the rank whose failure ended the group. Ends are added in the order in which they were seen.
class FailureAttribution {
 public:
  void add(RankEnd end);
  bool has_failure() const;
  /// Null when no rank failed: all done, or stopped and resumable. If all failed in the same way, rank 0.
  const RankEnd* culprit() const;
  bool is_done() const;  ///< all ended with 0
  bool was_asked_to_end() const { return forwarded_signal() != 0; }
  int forwarded_signal() const;  ///< 0: none
  /// The exit status of the launch, one of core::ExitCode: that of the culprit, 1 if a signal killed it; otherwise 75
  /// if ranks were asked to end, 130 after a second SIGINT.
  int status() const;

 private:
  std::vector<RankEnd> ends_;
};

}  // namespace runner::launch
