#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runner/distributed/process_group.h"

namespace tests {

/// Ranks whose exchanges are copies in the memory of this process. They run one at a time: at each exchange, and
/// wherever one waits, a generator draws who goes on, so a seed is an order of arrivals, the same each time.
///   - what a rank receives is NaN until it waits for it, and what it sends is read as late as can be
///   - ranks that all wait for each other end with an error, at once
///   - what a rank does with a group that has lost another one is an error
struct PretendedRanks {
  int size = 2;
  std::uint64_t seed = 1;
  std::optional<int> slow = {};  ///< goes on only when no other rank can
  std::optional<int> lost = {};  ///< throws in the place of its exchange number `lost_at`, counted from 0
  std::int64_t lost_at = 0;
  /// Called by each rank within an exchange that it begins, as `all_gather of the weights`, with what it sends and
  /// receives in all those that it has not waited for.
  std::function<void(int rank, const std::string& what, const std::vector<at::Tensor>& on_their_way)> on_exchange = {};
};

struct RanksEnd {
  std::vector<std::string> errors;      ///< by rank: what it threw, "" where it completed
  std::vector<std::string> exchanges;   ///< of rank 0, in order
  std::vector<std::string> violations;  ///< of what a group's callers must keep to
  std::size_t switches = 0;             ///< from one rank to another
};

/// Runs `body` as each of the ranks, on threads of their own.
RanksEnd run_pretended_ranks(const PretendedRanks& how,
                             const std::function<void(runner::distributed::ProcessGroup&)>& body);

}  // namespace tests
