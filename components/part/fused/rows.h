#pragma once

// What the nodes share. C: features of the stream   N: rows, B * T

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>

#include "components/kernels/transformer.h"
#include "components/ops/torch_bridge.h"
#include "components/part/norm.h"

namespace components::part {

/// What a norm's backward pass needs of the forward pass.
struct NormStatistics {
  at::Tensor mean, rstd;  // [N]
};

/// The numbers of a norm beside its tensors.
struct NormShape {
  std::int64_t rows = 0, width = 0;
  double eps = 0;
  bool centred = true;
};

NormShape shape_of(const Norm& norm, std::int64_t rows);

/// What is added to a stream before it is normed, and where the sum goes; nothing in front of a block.
struct Branch {
  const at::Tensor &added, &bias, &sum;  // [N, C] of the products' type, [C] or undefined, [N, C] float32
  kernels::DropMask drop;
};

/// Where the norm of some rows goes, [N, C]: in the type of the products, and in float32. Undefined: not asked for.
struct NormedRows {
  at::Tensor low, whole;
};

/// The norm of x [N, C], or of x + branch.
template <typename T>
void norm_rows(const float* x, const Branch* branch, const at::Tensor& weight, const at::Tensor& bias,
               const NormShape& shape, const NormedRows& to, NormStatistics& statistics);

/// What the gradient of a norm's input comes from.
struct NormGradient {
  const at::Tensor& x;        // what was normed, [N, C] float32
  const at::Tensor& dnormed;  // [N, C] of the products' type, or undefined
  const at::Tensor& dstream;  // [N, C] float32, the gradient that passes by, or undefined
  const at::Tensor& weight;
  bool with_bias = false;
  kernels::DropMask drop;    // of the branch in front
  const at::Tensor& dwhole;  // [N, C] float32, to be added to dnormed, or undefined
};

struct NormGradients {
  at::Tensor dx;              // [N, C] float32
  at::Tensor dweight, dbias;  // [C]
  at::Tensor low, sum;        // dx times `drop` in the products' type, and its sum over the rows: when asked for
};

template <typename T>
NormGradients norm_rows_backward(const NormGradient& of, const NormShape& shape, const NormStatistics& statistics,
                                 bool with_low, bool with_sum);

/// Whether any of these tensors, defined or not, wants a gradient now.
bool any_requires_grad(at::ArrayRef<at::Tensor> tensors);
/// Their edges, in order: an undefined tensor has none.
torch::autograd::edge_list edges_of(at::ArrayRef<at::Tensor> tensors);

}  // namespace components::part
