#include "components/part/row_products.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "components/kernels/processor.h"
#include "components/kernels/transformer.h"
#include "components/ops/torch_bridge.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;

constexpr std::int64_t kColumnsOfTask = 48;  // whole tiles of every level
constexpr std::int64_t kManyRows = 32;       ///< from here on a copy of the weights takes less time than it saves

template <typename T>
void multiply(const at::Tensor& out, const at::Tensor& x, const at::Tensor& weight) {
  const std::int64_t columns = weight.size(0), depth = weight.size(1);
  const std::int64_t tasks = (columns + kColumnsOfTask - 1) / kColumnsOfTask;
  kernels::parallel_for_rows(tasks, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * kColumnsOfTask, last = std::min(end * kColumnsOfTask, columns);
    kernels::transformer<T>().dots({data<T>(x), depth, data<T>(weight) + first * depth, depth, data<float>(out) + first,
                                    columns, x.size(0), last - first, depth});
  });
}

}  // namespace

at::Tensor row_products(const at::Tensor& x_NI, const at::Tensor& weight_OI) {
  RUNNER_ASSERT(x_NI.scalar_type() == weight_OI.scalar_type() && x_NI.is_contiguous() && weight_OI.is_contiguous(),
                "rows of one type without gaps");
  const at::Tensor out = kernels::new_tensor<float>({x_NI.size(0), weight_OI.size(0)});
  if (x_NI.scalar_type() == at::kFloat) {
    multiply<float>(out, x_NI, weight_OI);
  } else if (x_NI.size(0) >= kManyRows && !kernels::processor().avx512_bf16) {
    // Without instructions for pairs of bfloat16 the kernel widens what it reads, each weight once for a tile of rows.
    // In float32 it does the same sums in the same order.
    multiply<float>(out, x_NI.to(at::kFloat), weight_OI.to(at::kFloat));
  } else {
    multiply<Bf16>(out, x_NI, weight_OI);
  }
  return out;
}

}  // namespace components::part
