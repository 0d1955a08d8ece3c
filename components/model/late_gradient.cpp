#include "components/model/late_gradient.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <string>
#include <utility>

namespace components::model {
namespace {

using torch::autograd::variable_list;

/// Hands its gradient on. Of the nodes that could run, the engine takes the youngest: this one passes for the oldest.
class LateGradient final : public torch::autograd::Node {
 public:
  LateGradient() : Node(/*sequence_nr=*/0) {}

  variable_list apply(variable_list&& gradients) override { return std::move(gradients); }
  std::string name() const override { return "LateGradient"; }
};

}  // namespace

at::Tensor with_late_gradient(const at::Tensor& weight) {
  if (!at::GradMode::is_enabled() || !weight.requires_grad()) return weight;
  const std::shared_ptr<LateGradient> node(new LateGradient, torch::autograd::deleteNode);
  node->set_next_edges({torch::autograd::impl::gradient_edge(weight)});
  at::Tensor again = weight.detach();
  torch::autograd::set_history(again, node);
  return again;
}

}  // namespace components::model
