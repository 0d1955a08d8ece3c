#pragma once

#include <functional>
#include <vector>

#include "runner/distributed/process_group.h"

namespace tests {

struct RanksOptions {
  int size = 2;
  double timeout_s = 60;  ///< longer than any machine takes for what is to succeed
  bool debug = false;     ///< ProcessGroupOptions
};

/// Runs `body` as each of the ranks, on threads of this process that meet at a store of their own. What a rank throws
/// is thrown here when all have ended; the first rank's, where there are several.
void run_ranks(const RanksOptions& options, const std::function<void(runner::distributed::ProcessGroup&)>& body);

/// The same; what each rank threw, by rank, as text: "" where it completed.
std::vector<std::string> errors_of_ranks(const RanksOptions& options,
                                         const std::function<void(runner::distributed::ProcessGroup&)>& body);

}  // namespace tests
