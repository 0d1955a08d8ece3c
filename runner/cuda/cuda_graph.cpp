#include "runner/cuda/cuda_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <cuda_runtime_api.h>

#include <exception>

namespace runner::cuda {
namespace {

constexpr c10::MempoolId_t kOwnPool = {0, 0};

class CudaGraph final : public core::DeviceGraph {
 public:
  void capture(const std::function<void()>& work) override {
    // Of this thread's calls alone: a save may wait for its copies in a thread of its own meanwhile.
    graph_.capture_begin(kOwnPool, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      end_without_graph();
      throw;
    }
    graph_.capture_end();
  }

  void replay() override { graph_.replay(); }

 private:
  /// What ended the capture is told, not that it has no graph.
  void end_without_graph() noexcept {
    try {
      graph_.capture_end();
      graph_.reset();
    } catch (const std::exception&) {
      cudaGetLastError();  // else the next call would meet it again
    }
  }

  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<core::DeviceGraph> make_cuda_graph() { return std::make_unique<CudaGraph>(); }

}  // namespace runner::cuda
