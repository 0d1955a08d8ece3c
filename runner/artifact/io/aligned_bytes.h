#pragma once

#include <cstdint>

namespace runner::artifact {

/// Anonymous memory for large copies: aligned to pages, in huge pages where the kernel gives them, kept until resized
/// or gone. Pages arrive when they are first touched; prefault() touches them ahead of time.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  ~AlignedBytes();
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  /// Allocates at least `bytes`; the content is lost when it grows. False when out of memory.
  bool reserve(std::int64_t bytes);
  /// The same for piecewise work: halves the size as long as memory is short, down to a page.
  bool reserve_at_most(std::int64_t bytes);
  /// Touches all of it: 0.1 s for a gigabyte, many times that on a virtual machine that has yet to get the memory.
  void prefault();

  /// Gives it back to the system.
  void release();

  char* data() const { return data_; }
  std::int64_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace runner::artifact
