#include "runner/train/strategy/rank_differences.h"

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/distributed/process_group.h"

namespace runner::train {

using core::Node;

void check_ranks_agree(distributed::ProcessGroup& ranks, const std::vector<std::pair<std::string, std::string>>& own,
                       const char* site, const std::string& hint) {
  Node mine = Node::mapping();
  for (const auto& [what, value] : own) mine.set(what, Node::string(value));
  const std::vector<std::string> all = ranks.all_gather(core::to_json(mine, -1), site);
  const Node first = core::parse_json(all.front()).value();
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const Node other = core::parse_json(all[rank]).value();
    for (const auto& [what, value] : own) {
      const std::string a = first.find(what)->as_string(), b = other.find(what)->as_string();
      if (a == b) continue;
      throw core::RunError("ranks 0 and " + std::to_string(rank) + " differ in " + what + ": " + a + " and " + b, hint,
                           core::kExitUsage);
    }
  }
}

}  // namespace runner::train
