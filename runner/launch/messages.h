#pragma once

#include <optional>
#include <string>

#include "runner/core/node.h"
#include "runner/launch/failure_attribution.h"
#include "runner/launch/local_ranks.h"
#include "runner/launch/supervisor.h"

namespace runner::launch {

// Messages between supervisors: each is a mapping whose only key is its type.

/// The first message of a machine to the leader.
struct Hello {
  std::string program;  ///< version and source
  std::string host;
  std::optional<int> rank;  ///< of the machine; nothing: any free one
  int num_processes = 1, num_machines = 1;
};
/// From the leader: start the ranks.
struct Start {
  RankAssignment assignment;
  std::uint16_t store_port = 0;
};

core::Node message(const Hello& hello);
core::Node message(const Start& start);
core::Node message(const RankEnd& end);    ///< to the leader
core::Node message(const LaunchEnd& end);  ///< from the leader: the launch has ended
core::Node stop_message();                 ///< from the leader: a rank has failed
core::Node end_expected_message();         ///< from the leader: a rank is done

/// Nothing for another type of message.
std::optional<Hello> hello_of(const core::Node& message);
std::optional<Start> start_of(const core::Node& message);
std::optional<RankEnd> rank_end_in(const core::Node& message);
std::optional<LaunchEnd> end_of(const core::Node& message);
bool is_stop(const core::Node& message);
bool is_end_expected(const core::Node& message);

}  // namespace runner::launch
