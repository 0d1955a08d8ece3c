#pragma once

#include <cstdint>

#include "runner/distributed/comm_hook.h"
#include "runner/resolve/load.h"

namespace runner::train {

/// The section `ddp`, and what else says how several processes exchange gradients.
struct DdpOptions {
  std::int64_t bucket_bytes = 25 << 20;
  distributed::ExchangeOptions exchange;
  std::int64_t local_steps = 0;        ///< LocalSgd: no gradients are exchanged; 0: they are, in each step
  bool sync_each_batch = false;        ///< after each micro-batch instead of once a step
  bool find_unused_parameters = true;  ///< false: one without a gradient is an error
  bool static_graph = false;           ///< the parameters with a gradient are the same in each step, or it is an error
  bool broadcast_buffers = false;      ///< running statistics are those of the first process
  bool check_reduction = false;        ///< compare a checksum over the ranks after each exchange
};

/// The options a settled recipe asks for.
DdpOptions ddp_options(const resolve::Recipe& recipe);

}  // namespace runner::train
