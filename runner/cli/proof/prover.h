#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace runner::cli {

class Session;

struct ProofOptions {
  std::vector<std::int64_t> kill_at;  ///< optimizer steps, each in its own run; empty: where a kill may do harm
  std::optional<std::int64_t> kills;  ///< number of random kill points
  std::uint64_t seed = 0;             ///< of the random kill points
  bool keep = false;                  ///< also the folders of runs that ended identical
};

/// Runs the program with `arguments` in folders below `folder`: once to its end, and many times killed and resumed.
/// Prints one line for each, and fails in `session` unless all end bit-identical. Takes as long as all the runs.
void prove(Session& session, const ProofOptions& options, std::vector<std::string> arguments, std::string folder);

}  // namespace runner::cli
