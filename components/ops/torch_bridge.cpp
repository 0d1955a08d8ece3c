#include "components/ops/torch_bridge.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <type_traits>

#include "components/tensor/meta_pass.h"

namespace components::kernels {
namespace {

at::Device device() { return MetaPass::is_on() ? at::kMeta : at::kCPU; }

template <typename T>
at::Tensor empty(at::IntArrayRef shape) {
  const at::ScalarType type = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;
  return at::empty(shape, at::TensorOptions().dtype(type).device(device()));
}

std::int64_t pieces_of(std::int64_t rows) { return std::clamp<std::int64_t>(rows, 1, at::get_num_threads()); }

}  // namespace

template <typename T>
T* data(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.data_ptr()) : nullptr;
}
template float* data<float>(const at::Tensor&);
template Bf16* data<Bf16>(const at::Tensor&);

template <typename T>
at::Tensor new_tensor(std::initializer_list<std::int64_t> shape) {
  return empty<T>(shape);
}
template at::Tensor new_tensor<float>(std::initializer_list<std::int64_t>);
template at::Tensor new_tensor<Bf16>(std::initializer_list<std::int64_t>);

template <typename T>
at::Tensor new_like(const at::Tensor& tensor) {
  return empty<T>(tensor.sizes());
}
template at::Tensor new_like<float>(const at::Tensor&);
template at::Tensor new_like<Bf16>(const at::Tensor&);

void parallel_for_rows(std::int64_t rows, const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f) {
  if (MetaPass::is_on()) return;
  const std::int64_t pieces = pieces_of(rows);
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      f(piece, rows * piece / pieces, rows * (piece + 1) / pieces);
    }
  });
}

at::Tensor meta_workspace(std::int64_t rows, std::int64_t floats) {
  return MetaPass::is_on() ? new_tensor<float>({pieces_of(rows), floats}) : at::Tensor();
}

PieceSums::PieceSums(bool wanted, std::int64_t width) : width_(width) {
  if (!wanted) return;
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device());
  sums_ = std::make_unique<at::Tensor>(at::zeros({at::get_num_threads(), width}, options));
}

PieceSums::~PieceSums() = default;

float* PieceSums::of(std::int64_t piece) const {
  return sums_ != nullptr ? sums_->data_ptr<float>() + piece * width_ : nullptr;
}

at::Tensor PieceSums::total() const { return sums_ != nullptr ? at::sum(*sums_, 0) : at::Tensor(); }

template <>
at::Tensor lowered<float>(const at::Tensor& tensor) {
  return tensor;
}

template <>
at::Tensor lowered<Bf16>(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kBFloat16) return tensor;
  at::Tensor low = new_like<Bf16>(tensor);
  lower_into(low, tensor);
  return low;
}

void lower_into(const at::Tensor& low, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  parallel_for_rows(dense.numel(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    transformer<Bf16>().lower(data<float>(dense) + begin, data<Bf16>(low) + begin, end - begin);
  });
}

}  // namespace components::kernels
