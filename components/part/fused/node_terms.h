#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <vector>

#include "components/part/linear.h"

namespace components::part {

/// The terms of one linear layer in a node of the graph. Their tensors stand among the node's inputs, from a place on.
class NodeTerms {
 public:
  /// Adds the terms of `linear` to y [N, O] = x W^T.
  void forward(const Linear& linear, const at::Tensor& y_NO, const at::Tensor& x_NI);
  /// The gradient of x W^T for that of y: the same tensor, but where a term multiplied it.
  at::Tensor of_product(const at::Tensor& dy_NO);
  /// dy: of_product(). Adds to dx [N, I] where that is defined, and puts the gradients of the tensors at their places.
  void backward(const at::Tensor& dy_NO, const at::Tensor& x_NI, const at::Tensor& dx_NI,
                torch::autograd::variable_list& of_inputs);

  std::size_t first = 0;  ///< place of the first tensor

 private:
  std::vector<std::unique_ptr<LinearTermBackward>> terms_;
};

/// The tensors of all terms of these layers, in order: a node's inputs behind its own.
std::vector<at::Tensor> term_tensors(std::initializer_list<const Linear*> linears);
std::size_t term_tensor_count(const Linear& linear);

}  // namespace components::part
