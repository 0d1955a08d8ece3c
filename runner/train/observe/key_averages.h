#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/store/profile/profile.h"

namespace runner::train {

/// One event of a trace, as LibTorch's profiler reports it: an operation, a range, or (without a length) an allocation.
struct TracedEvent {
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t thread = 0, end_thread = 0;
  bool is_range = false;
  std::string shapes = {};  ///< `[[8, 32], []]`; "" when shapes were not recorded
  std::int64_t flops = 0;
  std::int64_t sequence = -1;  ///< sequence number of a backward node; -1: none
  std::int64_t bytes = 0;      ///< allocated (positive) or freed; only for `[memory]`
};

/// The forward pass of a block: its backward nodes have numbers in [first, end).
struct BlockPass {
  std::size_t block = 0;  ///< index in the model
  std::int64_t first = 0, end = 0;
};

struct KeyAverages {
  std::vector<store::ProfileRow> rows;  ///< in the order of their first event
  std::vector<store::ProfileStep> steps;
  std::vector<store::MemoryPoint> memory;  ///< empty without `[memory]` events
  /// `range;operation;operation us`, sorted: the input of flame graph tools. Times are self times.
  std::string stacks;
};

/// Sums events by name and shapes as torch.autograd's EventList.key_averages does: the parent of an event is the
/// shortest one of its thread that contains it; an only child with its parent's name is skipped; memory allocated or
/// freed during an event counts for it, on any thread.
KeyAverages key_averages(const std::vector<TracedEvent>& events);

/// Time and memory of each of the model's blocks, by name. Backward nodes count for the block with the forward pass
/// that created them.
std::vector<store::ProfileBlock> block_averages(const std::vector<TracedEvent>& events,
                                                const std::vector<std::string>& names,
                                                const std::vector<BlockPass>& passes);

}  // namespace runner::train
