#include "runner/train/save/tensor_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include <atomic>

#include "runner/core/units.h"

namespace runner::train {
namespace {

// LibTorch has one allocator per process, and its deleters are plain functions.
std::atomic<std::int64_t> limit{0}, held{0}, peak{0};
c10::DeleterFnPtr give_back = nullptr;

std::int64_t size_of(void* block) { return static_cast<std::int64_t>(malloc_usable_size(block)); }

void count(std::int64_t bytes) {
  const std::int64_t now = held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t most = peak.load(std::memory_order_relaxed);
  while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

void discount(void* block) {
  if (block == nullptr) return;
  held.fetch_sub(size_of(block), std::memory_order_relaxed);
  give_back(block);
}

class LimitedAllocator final : public c10::Allocator {
 public:
  explicit LimitedAllocator(c10::Allocator& inner) : inner_(inner) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    const std::int64_t before = held.load(std::memory_order_relaxed);
    const std::int64_t most = limit.load(std::memory_order_relaxed);
    TORCH_CHECK_WITH(OutOfMemoryError, before + static_cast<std::int64_t>(bytes) <= most, "max_memory is ",
                     core::format_bytes(most), ": tensors use ", core::format_bytes(before), "; allocating ",
                     core::format_bytes(static_cast<std::int64_t>(bytes)), " more exceeds it");
    c10::DataPtr inner = inner_.allocate(bytes);
    if (inner.get() == nullptr) return inner;
    void* block = inner.release_context();
    count(size_of(block));
    return {block, block, &discount, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &discount; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  c10::Allocator& inner_;
};

}  // namespace

void limit_tensor_memory(std::int64_t limit_bytes) {
  limit = limit_bytes;
  if (give_back != nullptr) return;  // a test sets another limit
  c10::Allocator* inner = c10::GetDefaultCPUAllocator();
  give_back = inner->raw_deleter();
  c10::SetCPUAllocator(new LimitedAllocator(*inner), 1);  // LibTorch keeps it for ever
}

bool tensor_memory_is_limited() { return limit.load(std::memory_order_relaxed) > 0; }

bool reserve_extra_memory(std::int64_t bytes) {
  if (!tensor_memory_is_limited()) return true;
  if (tensor_memory_peak_bytes() + bytes > limit.load(std::memory_order_relaxed)) return false;
  count(bytes);
  return true;
}

void release_extra_memory(std::int64_t bytes) {
  if (tensor_memory_is_limited()) held.fetch_sub(bytes, std::memory_order_relaxed);
}

std::int64_t tensor_memory_peak_bytes() { return peak.load(std::memory_order_relaxed); }

}  // namespace runner::train
