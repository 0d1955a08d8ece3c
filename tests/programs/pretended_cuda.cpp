// libroux_cuda.so for machines without a GPU: its two GPUs are pretended ones, and `device: cuda` trains on them.
// Beside a program it takes the place of the real one (tests/cli/gpu).
//   PRETENDED_MEMORY   bytes of each GPU; 2 GiB unless set
//   PRETENDED_CAPABILITY  of each GPU, `6.1`; 9.0 unless set
//   PRETENDED_LOST     the number of kernels after which the GPU is lost
//   PRETENDED_NCCL     `none`: the library has no NCCL; `shared`: its GPUs are one, as processes of two machines see
//                      that are one; another text: the error of every collective

#include <cstdlib>
#include <string>

#include "runner/core/platform/gpu_kernels.h"
#include "runner/cuda/cuda.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/pretended_nccl.h"

namespace {

std::int64_t number(const char* variable, std::int64_t otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : std::stoll(value);
}

constexpr const char* kCompiledFor = "-gencode;arch=compute_75,code=sm_75;-gencode;arch=compute_90,code=sm_90";

class PretendedCuda final : public runner::cuda::Cuda {
 public:
  PretendedCuda() {
    tests::accelerator::install();
    tests::accelerator::set_memory_limit(memory_);
    const std::int64_t lost = number("PRETENDED_LOST", 0);
    if (lost > 0) tests::accelerator::fail_after(lost, "CUDA error: unspecified launch failure");
    if (nccl_ != "none" && nccl_ != "shared") tests::accelerator::fail_nccl(nccl_);
  }

  runner::core::Result<std::vector<runner::cuda::Gpu>> gpus() override {
    const char* const told = std::getenv("PRETENDED_CAPABILITY");
    const std::string capability = told == nullptr ? "9.0" : told;
    const int major = capability.front() - '0', minor = capability.back() - '0';
    std::vector<runner::cuda::Gpu> gpus;
    for (char number : visible()) {
      if (nccl_ == "shared") number = '0';
      gpus.push_back({"pretended GPU", memory_, major, minor, std::string("0000:0") + number + ":00.0",
                      runner::core::lack_of_kernels(kCompiledFor, major, minor)});
    }
    return gpus;
  }
  std::string versions() override { return "pretended"; }
  void limit_memory(int, std::int64_t bytes) override { tests::accelerator::set_memory_limit(bytes); }
  runner::core::ConnectNccl nccl() override { return nccl_ == "none" ? nullptr : tests::accelerator::connect_nccl; }
  std::unique_ptr<runner::core::DeviceGraph> new_graph() override { return tests::accelerator::new_graph(); }
  std::vector<runner::cuda::Finding> check() override { return {}; }
  void hold(std::chrono::milliseconds time) override { tests::accelerator::hold_nccl(time); }

 private:
  /// The numbers in CUDA_VISIBLE_DEVICES, of one digit each.
  static std::string visible() {
    const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES");
    std::string digits = chosen == nullptr ? "01" : chosen;
    std::erase(digits, ',');
    return digits;
  }

  std::string nccl_ = std::getenv("PRETENDED_NCCL") == nullptr ? "" : std::getenv("PRETENDED_NCCL");
  std::int64_t memory_ = number("PRETENDED_MEMORY", std::int64_t{2} << 30);
};

}  // namespace

extern "C" __attribute__((visibility("default"))) runner::cuda::Cuda* roux_cuda() {
  static PretendedCuda cuda;
  return &cuda;
}
