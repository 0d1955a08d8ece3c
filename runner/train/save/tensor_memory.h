#pragma once

#include <cstdint>

namespace runner::train {

/// Limits the memory of CPU tensors: `training.max_memory`. An allocation beyond it throws c10::OutOfMemoryError with
/// the bytes held and requested. Counts allocations from here on, by the size that the allocator really returned. Call
/// once per process, before the first tensor that shall count.
void limit_tensor_memory(std::int64_t limit_bytes);

/// Reserves `bytes` of the limit for other memory, if they fit next to the peak of tensors so far; true without a
/// limit. release_extra_memory() returns them.
bool reserve_extra_memory(std::int64_t bytes);
void release_extra_memory(std::int64_t bytes);

bool tensor_memory_is_limited();

/// Peak bytes of tensors; 0 without a limit.
std::int64_t tensor_memory_peak_bytes();

}  // namespace runner::train
