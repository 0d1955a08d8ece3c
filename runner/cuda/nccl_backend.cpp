#include "runner/cuda/nccl_backend.h"

#include <cstdlib>

#include "runner/cuda/math_declarations.h"
// After the declarations that it needs.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace runner::cuda {

// LibTorch's watchdog would end the process from a thread of its own, with pages of log in place of a message. It has
// no option for that but this variable.
c10d::Backend* connect_nccl(c10d::Store& store, const core::NcclRank& rank) {
  setenv("TORCH_NCCL_BLOCKING_WAIT", "1", /*overwrite=*/1);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = rank.timeout;
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::intrusive_ptr<c10d::Store>::reclaim_copy(&store),
                                                             rank.rank, rank.size, options);
  backend->eagerConnectSingleDevice(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(rank.gpu)));
  return backend.release();
}

std::string nccl_version() { return c10d::getNcclVersion(); }

}  // namespace runner::cuda
