#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/store/profile/profile.h"

namespace runner::train {

/// One event of a trace, as LibTorch's profiler reports it: an operation, a range, a call of CUDA, a kernel or copy on
/// the GPU, or (without a length) an allocation.
struct TracedEvent {
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t thread = 0, end_thread = 0;
  bool is_range = false;
  std::string shapes = {};  ///< `[[8, 32], []]`; "" when shapes were not recorded
  std::int64_t flops = 0;
  std::int64_t sequence = -1;    ///< sequence number of a backward node; -1: none
  std::int64_t bytes = 0;        ///< allocated (positive) or freed; only for `[memory]`
  bool on_gpu = false;           ///< it ran there; of `[memory]`: memory of the GPU
  std::uint64_t id = 0;          ///< of an operation; 0: none
  std::uint64_t started_by = 0;  ///< id of the operation that called CUDA or started the kernel; 0: none
};

/// The forward pass of a block: its backward nodes have numbers in [first, end).
struct BlockPass {
  std::size_t block = 0;  ///< index in the model
  std::int64_t first = 0, end = 0;
};

struct KeyAverages {
  std::vector<store::ProfileRow> rows;  ///< in the order of their first event
  std::vector<store::ProfileStep> steps;
  std::vector<store::MemoryPoint> memory;  ///< of the GPU if it has `[memory]` events; empty without any
  /// `range;operation;operation us`, sorted: the input of flame graph tools. Times are self times.
  std::string stacks;
};

/// Sums events by name and shapes as torch.autograd's EventList.key_averages does: the parent of an event is the
/// shortest one of its thread that contains it; an only child with its parent's name is skipped; memory allocated or
/// freed during an event counts for it, on any thread. A kernel counts for the operation that started it and for what
/// contains that one, and has a row of its own. What Kineto shows of ranges among the kernels (`gpu_user_annotation`)
/// must not be among the events: it would count twice.
KeyAverages key_averages(const std::vector<TracedEvent>& events);

/// Time of each of the model's blocks, by name, and memory: the GPU's if it has `[memory]` events. Backward nodes
/// count for the block with the forward pass that created them.
std::vector<store::ProfileBlock> block_averages(const std::vector<TracedEvent>& events,
                                                const std::vector<std::string>& names,
                                                const std::vector<BlockPass>& passes);

}  // namespace runner::train
