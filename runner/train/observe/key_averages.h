#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/store/profile/profile.h"

namespace runner::train {

/// One event of a trace, as LibTorch's profiler gives it: an operation, a range, or (without a length) an allocation.
struct TracedEvent {
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t thread = 0, end_thread = 0;
  bool is_range = false;
  std::string shapes = {};  ///< `[[8, 32], []]`; "" when shapes were not recorded
  std::int64_t flops = 0;
  std::int64_t sequence = -1;  ///< of a node of the backward pass; -1: none
  std::int64_t bytes = 0;      ///< taken (positive) or given back; only for `[memory]`
};

/// The forward pass of a block: nodes that it left for the backward pass have numbers from `first` to before `end`.
struct BlockPass {
  std::size_t block = 0;  ///< which of the model's
  std::int64_t first = 0, end = 0;
};

struct KeyAverages {
  std::vector<store::ProfileRow> rows;  ///< in the order of their first event
  std::vector<store::ProfileStep> steps;
  std::vector<store::MemoryPoint> memory;  ///< empty without `[memory]` events
  /// `range;operation;operation us`, sorted: what flame graph tools read. Times are those of the innermost alone.
  std::string stacks;
};

/// Adds events up by name and shapes as torch.autograd's EventList.key_averages does: an event belongs to the shortest
/// one of its thread that holds all of it; one that is the only child of an event of its own name is left out; memory
/// that is taken or given back while an event lasts counts for it, on whatever thread.
KeyAverages key_averages(const std::vector<TracedEvent>& events);

/// Time and memory of each of the model's blocks, by its name. The backward nodes count for the block whose forward
/// pass made them.
std::vector<store::ProfileBlock> block_averages(const std::vector<TracedEvent>& events,
                                                const std::vector<std::string>& names,
                                                const std::vector<BlockPass>& passes);

}  // namespace runner::train
