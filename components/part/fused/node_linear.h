#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <vector>

#include "components/part/linear.h"
#include "components/part/product.h"

namespace components::part {

/// One linear layer in a node of the graph, without its bias: the product and the terms. Its parameter, and the tensors
/// of its terms, stand among the node's inputs.
class NodeLinear {
 public:
  /// x W^T with the terms, [N, O] in the type of x [N, I]. `with_backward`: the backward pass will be asked for.
  at::Tensor forward(const Linear& linear, const at::Tensor& x_NI, bool with_backward);
  /// The gradient of x, or an undefined tensor where it is not wanted; that of the parameter if it is wanted, and those
  /// of the terms, go to their places.
  ///
  /// dy_NO  of what forward() gave;  x_NI: its x
  at::Tensor backward(const at::Tensor& dy_NO, const at::Tensor& x_NI, bool of_input, bool of_weight,
                      torch::autograd::variable_list& of_inputs);

  std::size_t weight = 0, terms = 0;  ///< places of the parameter, and of the first of the terms' tensors

 private:
  /// The gradient of x W^T for that of y: the same tensor, but where a term multiplied it.
  at::Tensor of_product(const at::Tensor& dy_NO);

  std::unique_ptr<ProductBackward> product_;
  std::vector<std::unique_ptr<LinearTermBackward>> terms_;
};

/// The tensors of all terms of these layers, in order: a node's inputs behind its own.
std::vector<at::Tensor> term_tensors(std::initializer_list<const Linear*> linears);
std::size_t term_tensor_count(const Linear& linear);

}  // namespace components::part
