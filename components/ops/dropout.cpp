#include "components/ops/dropout.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "components/ops/torch_bridge.h"
#include "components/tensor/device.h"

namespace components {
namespace {

std::uint64_t draw() {
  const at::Generator generator = at::detail::getDefaultCPUGenerator();
  auto* const of_cpu = at::check_generator<at::CPUGeneratorImpl>(generator);
  const std::lock_guard<std::mutex> lock(of_cpu->mutex_);
  return of_cpu->random64();
}

}  // namespace

Dropout::Dropout(double p, const at::Tensor& x) : p_(p) {
  if (supports_own_kernels(x)) mask_.key = draw();
  *this = with_rate(p);
}

Dropout Dropout::with_rate(double p) const {
  constexpr auto kMost = static_cast<double>(std::numeric_limits<std::uint32_t>::max());
  Dropout other = *this;
  other.p_ = p;
  other.mask_.threshold = static_cast<std::uint32_t>(std::min(std::round(p * 0x1p32), kMost));
  other.mask_.scale = static_cast<float>(1.0 / (1.0 - p));
  return other;
}

Dropout Dropout::of_rows(const std::int64_t* rows) const {
  Dropout other = *this;
  other.mask_.rows = rows;
  return other;
}

kernels::DropMask Dropout::mask(std::uint32_t number) const {
  kernels::DropMask mask = mask_;
  mask.number = number;
  return mask;
}

at::Tensor Dropout::factors_like(const at::Tensor& x, std::uint32_t number) const {
  if (!supports_own_kernels(x)) {
    at::Tensor drawn = at::empty(x.sizes(), x.options());
    return drawn.bernoulli_(1.0 - p_).div_(1.0 - p_);
  }
  const at::Tensor factors = at::ones(x.sizes(), x.options().dtype(at::kFloat));
  if (factors.numel() == 0) return factors.to(x.scalar_type());
  const std::int64_t columns = x.size(-1);
  float* const all = kernels::data<float>(factors);
  kernels::parallel_for_rows(x.numel() / columns, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    float* const rows = all + begin * columns;
    kernels::transformer<float>().drop(rows, rows, mask(number).from_row(begin), end - begin, columns, columns);
  });
  return factors.to(x.scalar_type());
}

}  // namespace components
