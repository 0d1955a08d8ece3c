#include "components/tensor/norms.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "components/kernels/square_sum.h"

namespace components {
namespace {

constexpr std::int64_t kPieceElements = 65'536;  ///< of one thread's work

double square_sum(const float* numbers, std::int64_t count) {
  if (count <= kPieceElements) return kernels::square_sum(numbers, count);
  const std::int64_t pieces = (count + kPieceElements - 1) / kPieceElements;
  std::vector<double> sums(static_cast<std::size_t>(pieces));
  at::parallel_for(0, pieces, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t piece = from; piece < to; ++piece) {
      const std::int64_t begin = piece * kPieceElements;
      sums[static_cast<std::size_t>(piece)] =
          kernels::square_sum(numbers + begin, std::min(kPieceElements, count - begin));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

double vector_norm(const at::Tensor& tensor, double norm_type) {
  const bool is_ours = norm_type == 2.0 && tensor.is_cpu() && tensor.scalar_type() == at::kFloat &&
                       tensor.is_non_overlapping_and_dense();
  if (is_ours) return std::sqrt(square_sum(tensor.const_data_ptr<float>(), tensor.numel()));
  // The norm of a bfloat16 tensor would be one of bfloat16.
  const at::ScalarType type = tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::linalg_vector_norm(tensor, norm_type, std::nullopt, false, type).item<double>();
}

double total_norm(const std::vector<at::Tensor>& tensors, double norm_type) {
  if (tensors.empty() || tensors.front().is_cpu()) {
    std::vector<double> norms;
    norms.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors) norms.push_back(vector_norm(tensor, norm_type));
    return norm_of_parts(norms, norm_type);
  }
  return total_norm_on_device(tensors, norm_type).item<double>();
}

at::Tensor total_norm_on_device(const std::vector<at::Tensor>& tensors, double norm_type) {
  std::vector<at::Tensor> norms = at::_foreach_norm(tensors, norm_type, at::kFloat);
  for (at::Tensor& norm : norms) norm = norm.to(norms.front().device());  // a model may be on several devices
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

double norm_of_parts(const std::vector<double>& norms, double norm_type) {
  if (norm_type == 2.0) return std::sqrt(std::inner_product(norms.begin(), norms.end(), norms.begin(), 0.0));
  if (norms.empty()) return 0.0;
  const at::Tensor all = at::from_blob(const_cast<double*>(norms.data()), {static_cast<std::int64_t>(norms.size())},
                                       at::TensorOptions().dtype(at::kDouble));
  return at::linalg_vector_norm(all, norm_type).item<double>();
}

}  // namespace components
