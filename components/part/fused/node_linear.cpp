#include "components/part/fused/node_linear.h"

#include <utility>

#include "components/tensor/tensors.h"

namespace components::part {

at::Tensor NodeLinear::forward(const Linear& linear, const at::Tensor& x_NI, bool with_backward) {
  at::Tensor y_NO;
  product_ = linear.product().in_node(x_NI, y_NO, with_backward);
  for (const auto& term : linear.terms()) terms_.push_back(term->add_to(y_NO, x_NI));
  return y_NO;
}

at::Tensor NodeLinear::of_product(const at::Tensor& dy_NO) {
  at::Tensor own;
  for (const auto& term : terms_) {
    if (!term->scales()) continue;
    if (!own.defined()) own = dy_NO.clone();
    term->to_product(own);
  }
  return own.defined() ? own : dy_NO;
}

at::Tensor NodeLinear::backward(const at::Tensor& dy_NO, const at::Tensor& x_NI, bool of_input, bool of_weight,
                                torch::autograd::variable_list& of_inputs) {
  const at::Tensor dproduct_NO = of_product(dy_NO);
  const at::Tensor dx_NI = of_input ? product_->to_input(dproduct_NO) : at::Tensor();
  if (of_weight) of_inputs[weight] = product_->to_weight(dproduct_NO, x_NI);
  product_.reset();
  std::size_t place = terms;
  for (const auto& term : terms_) {
    for (at::Tensor& gradient : term->backward(dproduct_NO, x_NI, dx_NI)) of_inputs[place++] = std::move(gradient);
  }
  terms_.clear();
  return dx_NI;
}

std::vector<at::Tensor> term_tensors(std::initializer_list<const Linear*> linears) {
  std::vector<at::Tensor> tensors;
  for (const Linear* linear : linears) {
    for (const auto& term : linear->terms()) {
      for (const NamedTensor& named : term->tensors()) tensors.push_back(named.tensor);
    }
  }
  return tensors;
}

std::size_t term_tensor_count(const Linear& linear) { return term_tensors({&linear}).size(); }

}  // namespace components::part
