#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/platform/connect_nccl.h"
#include "runner/core/platform/device_graph.h"
#include "runner/core/result.h"

namespace runner::cuda {

struct Gpu {
  std::string name;
  std::int64_t memory_bytes = 0;
  int major = 0, minor = 0;      ///< of its compute capability
  std::string pci_address = {};  ///< `0000:65:00.0`; the driver's NVML knows it by that
  std::string unusable = {};     ///< why LibTorch has no kernels for it; "" if it has: core::lack_of_kernels()
};

/// One check on a GPU, with its error.
struct Finding {
  std::string what;
  std::string error;  ///< "" on success
};

/// Interface of libroux_cuda.so for the torch-free program: LibTorch's CUDA half and NCCL, which no CPU run loads. Only
/// builds of the preset `cuda` have one. Nothing here starts CUDA before it is called.
class Cuda {
 public:
  virtual ~Cuda() = default;
  /// Of this machine, in CUDA's order. Fails when there is no driver or no GPU, in the driver's words. Takes up to some
  /// seconds the first time, and a process that did it must not fork.
  virtual core::Result<std::vector<Gpu>> gpus() = 0;
  /// `CUDA 13.0 (driver 13.0), NCCL 2.28.9`; starts nothing.
  virtual std::string versions() = 0;
  /// Limits what this process allocates on a GPU: beyond it an allocation is out of memory. gpus() has succeeded.
  virtual void limit_memory(int gpu, std::int64_t bytes) = 0;
  /// Null: the library has no NCCL.
  virtual core::ConnectNccl nccl() = 0;
  /// A CUDA graph; gpus() has succeeded.
  virtual std::unique_ptr<core::DeviceGraph> new_graph() = 0;
  /// Tests GPU 0: training in bfloat16 against the same on the CPU, and a CUDA graph. gpus() has succeeded.
  virtual std::vector<Finding> check() = 0;
  /// Blocks GPU 0 for this long, so that work started after this call waits. For a test of timeouts; returns at once.
  virtual void hold(std::chrono::milliseconds time) = 0;
};

/// Whether this machine has a driver. Without one CUDA is not worth loading: its libraries take a second.
bool has_driver();

/// Whether the library is beside this program.
bool has_support();

/// The library beside this program, loaded before the engine: LibTorch decides once whether there is CUDA. Null when
/// this build has none; a failure when it is there and cannot be loaded.
core::Result<Cuda*> load_cuda();

}  // namespace runner::cuda
