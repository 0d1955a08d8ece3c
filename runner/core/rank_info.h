#pragma once

#include <cstdint>
#include <string>

namespace runner::core {

/// Which one of the processes that train together this is, and where they meet. The words of torchrun's environment.
struct RankInfo {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< among those on this host
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;
  bool hosts_store = false;  ///< this rank hosts the store that they meet at; false: somebody else does
};

}  // namespace runner::core
