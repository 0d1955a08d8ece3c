#pragma once

#include <cstdint>

#include "runner/distributed/comm_hook.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::train {

/// The section `ddp`, and the other settings of how processes exchange gradients.
struct DdpOptions {
  std::int64_t bucket_bytes = 25 << 20;
  distributed::CommHookOptions comm_hook;
  std::int64_t local_steps = 0;        ///< LocalSgd: steps between averaging; 0: gradients are exchanged in each step
  bool sync_each_batch = false;        ///< after each micro-batch instead of once a step
  bool find_unused_parameters = true;  ///< false: a parameter without a gradient is an error
  bool static_graph = false;       ///< it is an error if the set of parameters with a gradient changes between steps
  bool broadcast_buffers = false;  ///< use the running statistics of the first process
  bool check_reduction = false;    ///< compare a checksum across ranks after each exchange
};

/// The options a settled recipe asks for.
DdpOptions ddp_options(const resolve::Recipe& recipe);

}  // namespace runner::train
