#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>

#include <map>
#include <vector>

// The memory of the pretended accelerator: address space of its own for each device, which the CPU cannot read, and
// page-locked memory of the CPU.

namespace tests::accelerator {

c10::DeviceAllocator& device_allocator();
c10::Allocator& pinned_allocator();
bool is_page_locked(const void* address);

/// The CPU's view of a tensor: where kernels read and write it.
at::Tensor as_cpu(const at::Tensor& tensor);

/// Fills memory with what becomes NaN.
void poison(const c10::Storage& storage);

/// What the memory of a device held at one moment.
class MemoryImage {
 public:
  explicit MemoryImage(c10::DeviceIndex device);
  bool holds(const void* block) const { return blocks_.contains(block); }
  void restore() const;

 private:
  std::map<const void*, std::vector<char>> blocks_;
};

/// The allocator is told that this stream uses a block, too.
void record_block(const void* block, c10::StreamId stream);
/// A kernel of the current stream reads or writes this tensor.
void note_use(const at::Tensor& tensor);

}  // namespace tests::accelerator
