#pragma once

#include <cstdint>
#include <memory>

namespace tests {

/// Counts the bytes that tensors of this thread ask for while it lives: the same on every machine, whatever allocator
/// gives them.
class CountedMemory {
 public:
  CountedMemory();
  ~CountedMemory();
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  std::int64_t memory_bytes() const;  ///< now, since this began
  std::int64_t peak_bytes() const;

 private:
  struct Count;
  struct Guard;
  std::shared_ptr<Count> count_;
  std::unique_ptr<Guard> guard_;
};

}  // namespace tests
