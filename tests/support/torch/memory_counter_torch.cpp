#include "tests/support/torch/memory_counter_torch.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>

namespace tests {

struct MemoryCounter::Count final : public c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    held += bytes;
    peak = std::max(peak, held);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t held = 0, peak = 0;
};

struct MemoryCounter::Guard {
  explicit Guard(std::shared_ptr<Count> count) : guard(c10::DebugInfoKind::PROFILER_STATE, std::move(count)) {}
  c10::DebugInfoGuard guard;
};

MemoryCounter::MemoryCounter() : count_(std::make_shared<Count>()), guard_(std::make_unique<Guard>(count_)) {}
MemoryCounter::~MemoryCounter() = default;

std::int64_t MemoryCounter::memory_bytes() const { return count_->held; }
std::int64_t MemoryCounter::peak_bytes() const { return count_->peak; }

}  // namespace tests
