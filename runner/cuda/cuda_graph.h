#pragma once

#include <memory>

#include "runner/core/platform/device_graph.h"

namespace runner::cuda {

/// A CUDA graph by LibTorch, with memory of its own. LibTorch's generator of the GPU is part of it: each replay draws
/// the numbers that come next.
std::unique_ptr<core::DeviceGraph> make_cuda_graph();

}  // namespace runner::cuda
