#pragma once

#include <optional>
#include <string>

#include "runner/core/node.h"
#include "runner/launch/failure_attribution.h"
#include "runner/launch/local_ranks.h"
#include "runner/launch/supervisor.h"

namespace runner::launch {

// What supervisors say to each other: one mapping a message, told apart by its only key.

/// The first word of a machine to the one that leads.
struct Hello {
  std::string program;  ///< version and source
  std::string host;
  std::optional<int> rank;  ///< of the machine; nothing: whichever is free
  int num_processes = 1, num_machines = 1;
};
/// From the one that leads: the next life begins.
struct Start {
  Share share;
  std::uint16_t store_port = 0;
};

core::Node message(const Hello& hello);
core::Node message(const Start& start);
core::Node message(const RankEnd& end);    ///< to the one that leads
core::Node message(const LaunchEnd& end);  ///< from the one that leads: that was all
core::Node stop_message();                 ///< from the one that leads: somewhere a rank has failed

/// Nothing when it is another message.
std::optional<Hello> hello_of(const core::Node& message);
std::optional<Start> start_of(const core::Node& message);
std::optional<RankEnd> rank_end_in(const core::Node& message);
std::optional<LaunchEnd> end_of(const core::Node& message);
bool is_stop(const core::Node& message);

}  // namespace runner::launch
