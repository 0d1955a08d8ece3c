#pragma once

#include <cstdint>
#include <memory>

namespace tests {

/// Counts the bytes that tensors of this thread ask for while it lives: the same on every machine, whatever allocator
/// gives them.
class MemoryCounter {
 public:
  MemoryCounter();
  ~MemoryCounter();
  MemoryCounter(const MemoryCounter&) = delete;
  MemoryCounter& operator=(const MemoryCounter&) = delete;

  std::int64_t memory_bytes() const;  ///< now, since this began
  std::int64_t peak_bytes() const;

 private:
  struct Count;
  struct Guard;
  std::shared_ptr<Count> count_;
  std::unique_ptr<Guard> guard_;
};

}  // namespace tests
