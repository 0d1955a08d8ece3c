#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// Whether an error's text is that of an allocation that failed, on whatever device.
///
/// Source  Accelerate's should_reduce_batch_size, and what LibTorch 2.11 says on the CPU.
bool is_out_of_memory(std::string_view text);
/// The same of an exception: std::bad_alloc and c10::OutOfMemoryError are, a c10::Error by its text.
bool is_out_of_memory(const std::exception& error);

/// What the exception says in one line, without a stack.
std::string plain_text(const std::exception& error);

/// Where several processes train and the memory of one of them ran out: throws on each of them the shortage of the
/// first one that met it, which is_out_of_memory() knows. `mine`: what this rank met, or nothing. A collective.
void share_out_of_memory(distributed::ProcessGroup& ranks, const std::exception_ptr& mine);
/// Whether all ranks met this one together.
bool is_shared(const std::exception& error);

/// How the micro-batch shrinks after an allocation that failed: `training.auto_micro_batch`.
///
/// Source  Accelerate's find_executable_batch_size; golden topic control_flow
class MicroBatchPolicy {
 public:
  /// `halve`, `shrink` (times 0.9, rounded down) or `minus:K`, as the schema lets through; "" never shrinks.
  explicit MicroBatchPolicy(std::string_view text);

  bool shrinks() const { return kind_ != Kind::kNever; }
  /// The next size to try; 0 when there is none below.
  std::int64_t next(std::int64_t size) const;

 private:
  enum class Kind { kNever, kHalve, kShrink, kMinus };
  Kind kind_ = Kind::kNever;
  std::int64_t minus_ = 0;
};

}  // namespace runner::train
