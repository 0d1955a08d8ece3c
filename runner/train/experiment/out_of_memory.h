#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "runner/core/error.h"

namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// Whether an error's text reports a failed allocation, on any device.
///
/// Source  Accelerate's should_reduce_batch_size, and LibTorch 2.11's message on the CPU.
bool is_out_of_memory(std::string_view text);
/// The same for an exception: true for std::bad_alloc and c10::OutOfMemoryError; by its text for a c10::Error.
bool is_out_of_memory(const std::exception& error);
/// What ended `work` if memory ran out, to be thrown later; null: nothing.
template <typename Work>
std::exception_ptr out_of_memory_in(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    return std::current_exception();
  }
  return nullptr;
}

/// The exception's message, without a stack trace.
std::string plain_text(const std::exception& error);
/// The error of a component, LibTorch, a device or an allocation as a readable message.
core::RunError as_run_error(const std::exception& error);

/// When a rank ran out of memory: throws the error of the first such rank on every rank; is_out_of_memory() is true for
/// it. `mine`: this rank's error, or nothing. A collective.
void share_out_of_memory(distributed::ProcessGroup& ranks, const std::exception_ptr& mine);
/// Whether the error was thrown on all ranks.
bool is_shared(const std::exception& error);

/// How the micro-batch shrinks after a failed allocation: `training.auto_micro_batch`.
///
/// Source  Accelerate's find_executable_batch_size; golden topic control_flow
class MicroBatchPolicy {
 public:
  /// `halve`, `shrink` (times 0.9, rounded down) or `minus:K`, as the schema accepts; "" never shrinks.
  explicit MicroBatchPolicy(std::string_view text);

  bool shrinks() const { return kind_ != Kind::kNever; }
  /// The next size to try; 0 when none is left.
  std::int64_t next(std::int64_t size) const;

 private:
  enum class Kind { kNever, kHalve, kShrink, kMinus };
  Kind kind_ = Kind::kNever;
  std::int64_t minus_ = 0;
};

}  // namespace runner::train
