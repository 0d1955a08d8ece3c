#include "runner/cuda/cuda.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <string_view>
#include <thread>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/platform/gpu_kernels.h"
#include "runner/cuda/cuda_graph.h"
#include "runner/cuda/nccl_backend.h"

namespace runner::cuda {
namespace {

constexpr std::int64_t kRows = 64, kWidth = 128;
constexpr int kSteps = 20;
constexpr double kLr = 0.05;
constexpr int kReplays = 4;
constexpr double kBf16Tolerance = 0.02;  // of the loss: some roundings to eight bits, which the mean evens out

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

void expect(bool holds, const std::string& otherwise) {
  if (!holds) throw core::RunError(otherwise);
}

/// The last loss of a small regression by gradient descent, its products in bfloat16.
double train_on(at::Device device) {
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  const at::DeviceType type = device.type();
  at::manual_seed(1);
  const at::Tensor x = at::randn({kRows, kWidth}).to(device), target = at::randn({kRows, 1}).to(device);
  at::Tensor first = (at::randn({kWidth, kWidth}) / std::sqrt(kWidth)).to(device).requires_grad_(true);
  at::Tensor second = (at::randn({kWidth, 1}) / std::sqrt(kWidth)).to(device).requires_grad_(true);
  double last = std::numeric_limits<double>::quiet_NaN();
  at::autocast::set_autocast_dtype(type, at::kBFloat16);
  for (int step = 0; step < kSteps; ++step) {
    at::autocast::set_autocast_enabled(type, true);
    const at::Tensor output = at::matmul(at::gelu(at::matmul(x, first)), second);
    at::autocast::set_autocast_enabled(type, false);
    at::autocast::clear_cache();
    const at::Tensor loss = at::mse_loss(output.to(at::kFloat), target);
    torch::autograd::backward({loss}, {});
    last = loss.item<double>();
    const at::NoGradGuard no_grad;
    for (at::Tensor* weight : {&first, &second}) {
      weight->sub_(weight->grad(), kLr);
      weight->mutable_grad().reset();
    }
  }
  return last;
}

void check_training() {
  const double on_cpu = train_on(at::kCPU), on_gpu = train_on(at::Device(at::kCUDA, 0));
  expect(std::fabs(on_gpu - on_cpu) <= kBf16Tolerance * on_cpu, "loss " + std::to_string(on_gpu) + " after " +
                                                                    std::to_string(kSteps) + " steps, on the CPU " +
                                                                    std::to_string(on_cpu));
}

void sleep_for(void* time) { std::this_thread::sleep_for(*static_cast<std::chrono::milliseconds*>(time)); }

/// A graph adds a number that moves, and one that is drawn.
void check_graph() {
  const c10::cuda::CUDAStreamGuard on(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, /*device=*/0));
  const auto options = at::device(at::Device(at::kCUDA, 0)).dtype(at::kFloat);
  const at::Tensor number = at::zeros({}, options), sum = at::zeros({}, options), drawn = at::zeros({}, options);
  const auto graph = make_cuda_graph();
  graph->capture([&] {
    sum.add_(number);
    drawn.copy_(at::rand({}, options));
  });
  double last = -1;
  for (int i = 1; i <= kReplays; ++i) {
    number.fill_(i);
    graph->replay();
    const auto draw = drawn.item<double>();
    expect(draw != last, "two replays drew the same number");
    last = draw;
  }
  expect(sum.item<double>() == kReplays * (kReplays + 1) / 2.0, "a replay did not read what its memory holds");
}

/// What LibTorch's kernels were compiled for; "" if it does not say.
std::string nvcc_flags() {
  constexpr std::string_view kBefore = "NVCC architecture flags: ";
  const std::string config = at::detail::getCUDAHooks().showConfig();
  const std::size_t begin = config.find(kBefore);
  if (begin == std::string::npos) return "";
  const std::size_t flags = begin + kBefore.size();
  return config.substr(flags, config.find('\n', flags) - flags);
}

Finding found(std::string what, const std::function<void()>& try_it) {
  try {
    try_it();
    return {std::move(what), ""};
  } catch (const std::exception& error) {
    return {std::move(what), first_line(error)};
  }
}

class LoadedCuda final : public Cuda {
 public:
  core::Result<std::vector<Gpu>> gpus() override {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) {
      cudaGetLastError();  // else the next call would meet it again
      return core::Failure{std::string("no GPU can be used: ") +
                               (status != cudaSuccess ? cudaGetErrorString(status) : "the driver sees none"),
                           "run nvidia-smi to see what the driver sees; `device: cpu` trains without a GPU"};
    }
    const std::string flags = nvcc_flags();
    std::vector<Gpu> gpus;
    for (int device = 0; device < count; ++device) {
      cudaDeviceProp properties = {};
      if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
      char address[32] = "";
      cudaDeviceGetPCIBusId(address, sizeof address, device);
      gpus.push_back({properties.name, static_cast<std::int64_t>(properties.totalGlobalMem), properties.major,
                      properties.minor, address, core::lack_of_kernels(flags, properties.major, properties.minor)});
    }
    return gpus;
  }

  std::string versions() override {
    const auto version = [](int number) {
      constexpr int kMajor = 1000, kMinor = 10;
      return std::to_string(number / kMajor) + "." + std::to_string(number % kMajor / kMinor);
    };
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    return "CUDA " + version(runtime) + " (driver " + version(driver) + "), NCCL " + nccl_version();
  }

  void limit_memory(int gpu, std::int64_t bytes) override {
    at::globalContext().lazyInitDevice(at::kCUDA);
    cudaDeviceProp properties = {};
    if (cudaGetDeviceProperties(&properties, gpu) != cudaSuccess) return;
    const double fraction = static_cast<double>(bytes) / static_cast<double>(properties.totalGlobalMem);
    c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(fraction, 1.0), static_cast<c10::DeviceIndex>(gpu));
  }

  core::ConnectNccl nccl() override { return connect_nccl; }
  std::unique_ptr<core::DeviceGraph> new_graph() override { return make_cuda_graph(); }

  std::vector<Finding> check() override {
    return {found("training in bfloat16", check_training), found("CUDA graph", check_graph)};
  }

  void hold(std::chrono::milliseconds time) override {
    held_ = time;
    C10_CUDA_CHECK(cudaLaunchHostFunc(c10::cuda::getCurrentCUDAStream(0), sleep_for, &held_));
  }

 private:
  std::chrono::milliseconds held_{0};
};

}  // namespace
}  // namespace runner::cuda

extern "C" runner::cuda::Cuda* roux_cuda() {
  static runner::cuda::LoadedCuda cuda;
  return &cuda;
}
