#include "runner/artifact/io/aligned_bytes.h"

#include <sys/mman.h>

namespace runner::artifact {
namespace {

constexpr std::int64_t kHugePageBytes = 2 << 20;
constexpr std::int64_t kPageBytes = 4096;

}  // namespace

AlignedBytes::~AlignedBytes() { release(); }

void AlignedBytes::release() {
  if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(size_));
  data_ = nullptr;
  size_ = 0;
}

bool AlignedBytes::reserve(std::int64_t bytes) {
  if (bytes <= size_) return true;
  release();
  const std::int64_t unit = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  const std::int64_t rounded = (bytes + unit - 1) / unit * unit;
  void* const start =
      ::mmap(nullptr, static_cast<std::size_t>(rounded), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return false;
  if (unit == kHugePageBytes) ::madvise(start, static_cast<std::size_t>(rounded), MADV_HUGEPAGE);
  data_ = static_cast<char*>(start);
  size_ = rounded;
  return true;
}

bool AlignedBytes::reserve_at_most(std::int64_t bytes) {
  while (!reserve(bytes)) {
    if (bytes <= kPageBytes) return false;
    bytes /= 2;
  }
  return true;
}

void AlignedBytes::prefault() {
  if (size_ == 0 || ::madvise(data_, static_cast<std::size_t>(size_), MADV_POPULATE_WRITE) == 0) return;
  // A kernel before 5.14. Reading and writing back keeps concurrent writes of other threads.
  for (std::int64_t at = 0; at < size_; at += kPageBytes) {
    __atomic_fetch_or(data_ + at, char{0}, __ATOMIC_RELAXED);
  }
}

}  // namespace runner::artifact
