#include "runner/engine/machine.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "components/ops/kernel_policy.h"
#include "components/ops/matmul.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/platform/machine.h"

namespace runner::engine {
namespace {

constexpr double kBudget_s = 0.8;
constexpr double kClearlyFaster = 1.3;  // a measurement beside other work is off by less
constexpr std::int64_t kMatrix = 2048;
constexpr std::int64_t kCopyBytes = 256 << 20;
constexpr std::int64_t kDiskBytes = 256 << 20;

double seconds_since(std::int64_t begin_ns) {
  return static_cast<double>(core::system_clock().monotonic_ns() - begin_ns) * 1e-9;
}

/// Best rate of several rounds: the limit is the undisturbed rate.
template <typename Work>
double best_rate(double amount, Work work) {
  work();
  double best = 0;
  const std::int64_t begin_ns = core::system_clock().monotonic_ns();
  while (seconds_since(begin_ns) < kBudget_s) {
    const std::int64_t round_ns = core::system_clock().monotonic_ns();
    work();
    best = std::max(best, amount / seconds_since(round_ns));
  }
  return best;
}

/// Of factors of one type into a result of the same or another one: roux's products of bfloat16 are summed up in
/// float32.
double matmul_flops(at::ScalarType type, at::ScalarType into) {
  const at::Tensor a = at::randn({kMatrix, kMatrix}).to(type), b = at::randn({kMatrix, kMatrix}).to(type);
  const at::Tensor out = at::empty({kMatrix, kMatrix}, at::TensorOptions().dtype(into));
  const double flops = 2.0 * static_cast<double>(kMatrix) * kMatrix * kMatrix;
  return best_rate(flops, [&] { components::matmul_into(out, a, b, false); });
}

double copy_bytes_per_s() {
  const at::Tensor from = at::randn({kCopyBytes / 4});
  at::Tensor to = at::empty_like(from);
  return best_rate(2.0 * static_cast<double>(kCopyBytes), [&] { to.copy_(from); });
}

double disk_bytes_per_s(const std::string& folder) {
  std::string path = folder + "/.roux-measure-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) throw core::RunError("cannot write into " + folder + " to measure the disk");
  unlink(path.c_str());
  const std::string chunk(8 << 20, 'x');
  const std::int64_t begin_ns = core::system_clock().monotonic_ns();
  std::int64_t written = 0;
  while (written < kDiskBytes) {
    const ssize_t n = write(file, chunk.data(), chunk.size());
    if (n <= 0) break;
    written += n;
  }
  fsync(file);
  const double seconds = seconds_since(begin_ns);
  close(file);
  return static_cast<double>(written) / seconds;
}

/// What roux takes for faster follows from the processor's model, so that a run and its resume decide alike.
std::string doubt_of(double bf16_by_float32) {
  const bool is_faster = components::has_bf16_units();
  if (is_faster ? bf16_by_float32 >= 1 : bf16_by_float32 < kClearlyFaster) return "";
  char share[16];
  std::snprintf(share, sizeof share, "%.2f", bf16_by_float32);
  return "bfloat16 was multiplied " + std::string(share) + " times as fast as float32, but roux takes it for " +
         (is_faster ? "faster on this processor; ROUX_CPU_CAPABILITY=avx512 computes bf16-mixed in float32"
                    : "no faster on this processor; please report its name");
}

}  // namespace

MachineLimits measure_machine(const std::string& scratch_dir) {
  MachineLimits limits;
  limits.cpu = core::cpu_name();
  limits.threads = at::get_num_threads();
  limits.matmul_fp32_flops = matmul_flops(at::kFloat, at::kFloat);
  limits.matmul_bf16_flops =
      std::max(matmul_flops(at::kBFloat16, at::kBFloat16), matmul_flops(at::kBFloat16, at::kFloat));
  limits.doubt = doubt_of(limits.matmul_bf16_flops / limits.matmul_fp32_flops);
  limits.memory_bytes_per_s = copy_bytes_per_s();
  limits.disk_write_bytes_per_s = disk_bytes_per_s(scratch_dir);
  return limits;
}

}  // namespace runner::engine
