#include "components/part/fused/node_terms.h"

#include <utility>

#include "components/tensor/tensors.h"

namespace components::part {

void NodeTerms::forward(const Linear& linear, const at::Tensor& y_NO, const at::Tensor& x_NI) {
  for (const auto& term : linear.terms()) terms_.push_back(term->add_to(y_NO, x_NI));
}

at::Tensor NodeTerms::of_product(const at::Tensor& dy_NO) {
  at::Tensor own;
  for (const auto& term : terms_) {
    if (!term->scales()) continue;
    if (!own.defined()) own = dy_NO.clone();
    term->to_product(own);
  }
  return own.defined() ? own : dy_NO;
}

void NodeTerms::backward(const at::Tensor& dy_NO, const at::Tensor& x_NI, const at::Tensor& dx_NI,
                         torch::autograd::variable_list& of_inputs) {
  std::size_t place = first;
  for (const auto& term : terms_) {
    for (at::Tensor& gradient : term->backward(dy_NO, x_NI, dx_NI)) of_inputs[place++] = std::move(gradient);
  }
  terms_.clear();
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
