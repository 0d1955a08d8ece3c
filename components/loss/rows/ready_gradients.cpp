#include "components/loss/rows/ready_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/error.h"

namespace components::loss {
namespace {

using torch::autograd::variable_list;

class ReadyGradientsBackward final : public torch::autograd::Node {
 public:
  ReadyGradientsBackward(variable_list ready, double gradient) : ready_(std::move(ready)), gradient_(gradient) {}

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    if (!gradients[0].defined()) return variable_list(num_outputs());
    RUNNER_ASSERT(!ready_.empty(), "a loss's backward pass runs once");
    const auto actual = gradients[0].item<float>();
    variable_list of_inputs = std::exchange(ready_, {});
    const auto expected = static_cast<float>(gradient_);
    for (std::size_t i = 0; i < of_inputs.size(); ++i) {
      if (!task_should_compute_output(i)) of_inputs[i] = at::Tensor();
      if (of_inputs[i].defined() && actual != expected) of_inputs[i].mul_(actual / expected);
    }
    return of_inputs;
  }

  std::string name() const override { return "ReadyGradientsBackward"; }
  void release_variables() override { ready_.clear(); }

 private:
  variable_list ready_;
  double gradient_;
};

}  // namespace

at::Tensor with_ready_gradients(double loss, double gradient, std::initializer_list<ReadyGradient> inputs) {
  at::Tensor sum = at::scalar_tensor(loss, at::TensorOptions().dtype(at::kFloat));
  variable_list ready;
  torch::autograd::edge_list edges;
  bool wanted = false;
  for (const ReadyGradient& one : inputs) {
    wanted |= one.gradient.defined();
    ready.push_back(one.gradient);
    edges.push_back(torch::autograd::impl::gradient_edge(one.input));
    if (!one.gradient.defined()) edges.back() = torch::autograd::Edge();
  }
  if (!wanted) return sum;
  const std::shared_ptr<ReadyGradientsBackward> node(new ReadyGradientsBackward(std::move(ready), gradient),
                                                     torch::autograd::deleteNode);
  node->set_next_edges(std::move(edges));
  torch::autograd::set_history(sum, node);
  return sum;
}

}  // namespace components::loss
