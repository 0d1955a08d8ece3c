#include "components/part/fused/rows.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "components/tensor/tensors.h"

namespace components::part {

using kernels::Bf16;
using kernels::data;
using kernels::new_tensor;
using kernels::parallel_for_rows;
using kernels::PieceSums;

namespace {

/// From that element on; null for an undefined tensor.
template <typename T>
T* row_of(const at::Tensor& tensor, std::int64_t at) {
  return tensor.defined() ? data<T>(tensor) + at : nullptr;
}

}  // namespace

NormShape shape_of(const Norm& norm, std::int64_t rows) {
  const NormOptions& options = norm.options();
  return {rows, options.width, options.eps, options.kind == NormOptions::Kind::kLayer};
}

template <typename T>
void norm_rows(const float* x, const Branch* branch, const at::Tensor& weight, const at::Tensor& bias,
               const NormShape& s, const NormedRows& to, NormStatistics& statistics) {
  statistics.mean = new_tensor<float>({s.rows});
  statistics.rstd = new_tensor<float>({s.rows});
  parallel_for_rows(s.rows, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * s.width;
    kernels::transformer<T>().layer_norm(
        {x + at, branch != nullptr ? data<T>(branch->added) + at : nullptr,
         branch != nullptr ? data<float>(branch->bias) : nullptr,
         branch != nullptr ? data<float>(branch->sum) + at : nullptr, data<float>(weight), data<float>(bias), s.eps,
         row_of<T>(to.low, at), data<float>(statistics.mean) + begin, data<float>(statistics.rstd) + begin, end - begin,
         s.width, branch != nullptr ? branch->drop.from_row(begin) : kernels::DropMask{}, s.centred,
         row_of<float>(to.whole, at)});
  });
}

template <typename T>
NormGradients norm_rows_backward(const NormGradient& of, const NormShape& s, const NormStatistics& statistics,
                                 bool with_low, bool with_sum) {
  NormGradients found;
  found.dx = new_tensor<float>({s.rows, s.width});
  if (with_low) found.low = new_tensor<T>({s.rows, s.width});
  const PieceSums dweight(true, s.width), dbias(of.with_bias, s.width), dsum(with_sum, s.width);
  parallel_for_rows(s.rows, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * s.width;
    kernels::transformer<T>().layer_norm_backward(
        {data<float>(of.x) + at, data<float>(statistics.mean) + begin, data<float>(statistics.rstd) + begin,
         data<float>(of.weight), row_of<T>(of.dnormed, at), row_of<float>(of.dstream, at), data<float>(found.dx) + at,
         row_of<T>(found.low, at), dweight.of(piece), dbias.of(piece), dsum.of(piece), end - begin, s.width,
         of.drop.from_row(begin), s.centred, row_of<float>(of.dwhole, at)});
  });
  found.dweight = dweight.total();
  found.dbias = dbias.total();
  found.sum = dsum.total();
  return found;
}

bool any_requires_grad(at::ArrayRef<at::Tensor> tensors) {
  return at::GradMode::is_enabled() && std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
           return tensor.defined() && tensor.requires_grad();
         });
}

torch::autograd::edge_list edges_of(at::ArrayRef<at::Tensor> tensors) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& tensor : tensors) {
    edges.push_back(tensor.defined() ? torch::autograd::impl::gradient_edge(tensor) : torch::autograd::Edge());
  }
  return edges;
}

template void norm_rows<float>(const float*, const Branch*, const at::Tensor&, const at::Tensor&, const NormShape&,
                               const NormedRows&, NormStatistics&);
template void norm_rows<Bf16>(const float*, const Branch*, const at::Tensor&, const at::Tensor&, const NormShape&,
                              const NormedRows&, NormStatistics&);
template NormGradients norm_rows_backward<float>(const NormGradient&, const NormShape&, const NormStatistics&, bool,
                                                 bool);
template NormGradients norm_rows_backward<Bf16>(const NormGradient&, const NormShape&, const NormStatistics&, bool,
                                                bool);

}  // namespace components::part
