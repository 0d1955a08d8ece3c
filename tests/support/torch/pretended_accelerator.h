#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace runner::core {
class DeviceGraph;
}

/// An accelerator for tests on machines without one: a PrivateUse1 backend of LibTorch with two devices, `pretend:0`
/// and `pretend:1`. Its kernels are the CPU's, run on copies. What a GPU would not forgive fails here too:
///
///   - device memory is not readable outside of the backend's kernels: a read or write by the CPU is a SIGSEGV
///   - new memory holds NaN
///   - a kernel refuses tensors of another device, but for CPU scalars
///   - a copy to or from page-locked memory that need not block is late, on every stream: it is made when something
///   waits for it (for an event, the stream, the device or a value) or when its stream runs a kernel, and until then
///   its target holds NaN. A stream that waits for another one does so when it runs its next kernel
///   - a captured graph repeats its kernels on the same memory; what it computes for itself is NaN before each replay.
///   A copy from or to the CPU, a value that is read, a shape that depends on values and a wait are refused in a
///   capture
///   - with deterministic algorithms an operation that CUDA has in no such form is an error, in the same words
///   - each device has its own generator, memory limit and, on demand, an error
namespace tests::accelerator {

/// Registers the backend in this process, for good; does nothing a second time. Call it before the first backward pass:
/// LibTorch starts a thread for each device then.
void install();

/// A limit on what the tensors of each device hold; an allocation beyond it throws c10::OutOfMemoryError.
void set_memory_limit(std::int64_t bytes);
std::int64_t memory_held();
std::int64_t memory_peak();    ///< since the limit was set
std::int64_t largest_block();  ///< that was allocated since then, in bytes

/// Kernels that have run: what has not run here has not been tested here.
std::int64_t kernels_run();
/// Values that the CPU has read from a device, one by one or as a whole tensor: on a GPU each waits for all kernels
/// before it.
std::int64_t values_read();
std::int64_t late_copies();
/// A graph of the current device and stream.
std::unique_ptr<runner::core::DeviceGraph> new_graph();
std::int64_t graph_replays();
/// Blocks of page-locked memory that another thread freed than the one that allocated them. On a GPU the free records
/// an event on the stream that used the block, and if a graph is captured there the next allocation fails.
std::int64_t page_locked_frees_elsewhere();
/// From now on an allocation of page-locked memory fails, or succeeds again.
void refuse_page_locked_memory(bool refuse);
/// Blocks that were freed after a use on a stream that the allocator was not told of: on a GPU they could be handed out
/// while that stream still reads them.
std::int64_t unrecorded_uses();
/// Lets this many kernels run; the next one fails with this error. "" takes it back.
void fail_after(std::int64_t kernels, const std::string& error);

}  // namespace tests::accelerator
