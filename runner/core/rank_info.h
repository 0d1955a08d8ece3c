#pragma once

#include <cstdint>
#include <string>

namespace runner::core {

/// The rank of this process in a training, and the rendezvous. Named as in torchrun's environment.
struct RankInfo {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< rank on this host
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;
  bool hosts_store = false;  ///< this rank hosts the rendezvous store; false: another process does
};

}  // namespace runner::core
