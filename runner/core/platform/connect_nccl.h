#pragma once

#include <chrono>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace runner::core {

/// A process among those that exchange tensors on GPUs.
struct NcclRank {
  int rank = 0, size = 1;
  int gpu = 0;  ///< of this process, in CUDA's order
  std::chrono::milliseconds timeout = {};
};

/// Connects the GPUs of all ranks that meet at `store` over NCCL: a function of libroux_cuda.so, which the engine does
/// not link. Blocks until all ranks have called. The caller owns the result (c10::intrusive_ptr::reclaim). Throws
/// LibTorch's errors; a rank that does not come may block it for ever.
using ConnectNccl = c10d::Backend* (*)(c10d::Store& store, const NcclRank& rank);

}  // namespace runner::core
