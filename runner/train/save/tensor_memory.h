#pragma once

#include <cstdint>

namespace runner::train {

/// Holds the memory of CPU tensors below a limit: `training.max_memory`. What would go beyond is refused with
/// c10::OutOfMemoryError, which says how much is held and how much was asked for. Counts what is allocated from here
/// on, by the size that the allocator really gave. To be called once a process, before the first tensor that shall
/// count.
void limit_tensor_memory(std::int64_t limit_bytes);

/// Takes `bytes` of other memory out of what tensors may hold, if the limit leaves them beside the most that was ever
/// held; true without a limit. give_back_memory() returns them.
bool take_memory_beside_tensors(std::int64_t bytes);
void give_back_memory(std::int64_t bytes);

bool tensor_memory_is_limited();

/// The most that tensors ever held; 0 without a limit.
std::int64_t tensor_memory_peak_bytes();

}  // namespace runner::train
