// B: samples   F: features in   O: features out

#include "components/model/fused_linear.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/threshold_backward.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::model {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

/// The backward pass; its inputs are x, weight and bias, in this order.
class FusedLinearBackward final : public torch::autograd::Node {
 public:
  FusedLinearBackward(const at::Tensor& x_BF, const at::Tensor& weight_OF, bool with_bias, bool relu)
      : x_(x_BF, false), weight_(weight_OF, false), with_bias_(with_bias), relu_(relu) {}

  void save_output(const at::Tensor& y_BO) {
    if (relu_) y_ = SavedVariable(y_BO, true);
  }

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    variable_list of_inputs(3);
    if (!gradients[0].defined()) return of_inputs;
    at::Tensor gradient_BO = std::move(gradients[0]);
    if (relu_) gradient_BO = at::threshold_backward(gradient_BO, y_.unpack(shared_from_this()), 0);
    if (task_should_compute_output(0)) of_inputs[0] = at::mm(gradient_BO, weight_.unpack());
    if (task_should_compute_output(1)) of_inputs[1] = at::mm(gradient_BO.t(), x_.unpack());
    if (with_bias_ && task_should_compute_output(2)) of_inputs[2] = at::sum(gradient_BO, 0);
    return of_inputs;
  }

  std::string name() const override { return "FusedLinearBackward"; }

  void release_variables() override {
    x_.reset_data();
    weight_.reset_data();
    y_.reset_data();
  }

 private:
  SavedVariable x_, weight_, y_;
  bool with_bias_, relu_;
};

at::Tensor compute(const at::Tensor& x_BF, const at::Tensor& weight_OF, const at::Tensor& bias_O, bool relu) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  at::Tensor y_BO = bias_O.defined() ? at::addmm(bias_O, x_BF, weight_OF.t()) : at::mm(x_BF, weight_OF.t());
  if (relu) y_BO.relu_();
  return y_BO;
}

bool fits(const at::Tensor& x_BF) {
  return x_BF.dim() == 2 && x_BF.scalar_type() == at::kFloat && (x_BF.is_cpu() || x_BF.is_meta()) &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

}  // namespace

at::Tensor fused_linear(const at::Tensor& x_BF, const at::Tensor& weight_OF, const at::Tensor& bias_O, bool relu) {
  if (!fits(x_BF)) {
    const std::optional<at::Tensor> bias = bias_O.defined() ? std::optional<at::Tensor>(bias_O) : std::nullopt;
    const at::Tensor y = at::linear(x_BF, weight_OF, bias);
    return relu ? at::relu(y) : y;
  }
  at::Tensor y_BO = compute(x_BF, weight_OF, bias_O, relu);
  if (!torch::autograd::compute_requires_grad(x_BF, weight_OF, bias_O)) return y_BO;
  const std::shared_ptr<FusedLinearBackward> node(new FusedLinearBackward(x_BF, weight_OF, bias_O.defined(), relu),
                                                  torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(x_BF, weight_OF, bias_O));
  torch::autograd::set_history(y_BO, node);
  node->save_output(y_BO);
  return y_BO;
}

}  // namespace components::model
