#include "runner/cuda/nccl_backend.h"

#include "runner/cuda/math_declarations.h"
// After the declarations that it needs.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace runner::cuda {

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                    std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
}

std::string nccl_version() { return c10d::getNcclVersion(); }

}  // namespace runner::cuda
