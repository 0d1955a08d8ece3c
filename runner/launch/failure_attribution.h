#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::launch {

/// How a rank, or something that the ranks cannot do without, came to its end, on whichever machine.
struct RankEnd {
  static constexpr int kNoRank = -1;  ///< the store, or a machine

  int rank = kNoRank;
  std::string who;        ///< `rank 1 (process 4711)`
  int status = 0;         ///< exit status, or 128 + the signal that ended it
  int signal = 0;         ///< that ended it
  int handed_on = 0;      ///< signal that its supervisor had got and handed on to it
  bool given_up = false;  ///< its supervisor killed it, after others had failed
  std::string words;      ///< what it said last: RankProcess::exit_message()
  std::string text = {};  ///< the whole message, where status and words do not make it

  bool failed() const;  ///< by itself: neither done, nor resumable, nor killed because of others
  bool obeyed() const { return handed_on != 0 && status == 128 + handed_on; }
  bool left_at_once() const;    ///< by a second SIGINT
  std::string message() const;  ///< what became of it, for a person
};

core::Node to_node(const RankEnd& end);
RankEnd rank_end_of(const core::Node& node);

/// Who is to blame for the end of one life of the group. Ends are added in the order in which they were seen.
class FailureAttribution {
 public:
  void add(RankEnd end);
  bool has_failure() const;
  /// Null when nobody is: all done, or stopped and resumable. Where all found the same thing wrong, the first rank.
  const RankEnd* culprit() const;
  bool is_done() const;           ///< all came to their end
  bool was_asked_to_end() const;  ///< somebody sent a signal
  /// The exit status of the whole, one of core::ExitCode: a culprit's, 1 where a signal killed it; else 75 where ranks
  /// were asked to end, 130 where that was by a second SIGINT.
  int status() const;

 private:
  std::vector<RankEnd> ends_;
};

}  // namespace runner::launch
