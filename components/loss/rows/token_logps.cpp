// N: tokens   C: features   V: classes   n: tokens of a chunk

#include "components/loss/rows/token_logps.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "components/loss/rows/logits_chunks.h"
#include "components/loss/rows/row_losses.h"

namespace components::loss {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows of no more than kLogitsBytes of float32 logits.
std::int64_t rows_at_a_time(std::int64_t classes) {
  return std::max<std::int64_t>(1, kLogitsBytes / (classes * static_cast<std::int64_t>(sizeof(float))));
}

class TokenLogps final : public torch::autograd::Function<TokenLogps> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden_NC, const at::Tensor& weight_VC,
                            const at::Tensor& target_N) {
    const at::ScalarType type = product_type(hidden_NC);
    const at::Tensor low_NC = hidden_NC.to(type), low_VC = weight_VC.to(type);
    const at::Tensor logps_N = at::empty({hidden_NC.size(0)}, hidden_NC.options().dtype(at::kFloat));
    for_chunks(low_NC.size(0), rows_at_a_time(low_VC.size(0)), [&](std::int64_t first, std::int64_t count) {
      const at::Tensor logits_nV = at::linear(low_NC.narrow(0, first, count), low_VC).to(at::kFloat);
      const at::Tensor chosen_n = logits_nV.gather(1, target_N.narrow(0, first, count).unsqueeze(1)).squeeze(1);
      logps_N.narrow(0, first, count).copy_(chosen_n - exponentiate(logits_nV).logsumexp.squeeze(1));
    });
    context->save_for_backward({low_NC, weight_VC, target_N});
    context->saved_data["hidden_type"] = static_cast<std::int64_t>(hidden_NC.scalar_type());
    return logps_N;
  }

  /// The gradient of a token's logits is its own times ([target] - softmax).
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &low_NC = saved[0], &weight_VC = saved[1], &target_N = saved[2];
    const auto hidden_type = static_cast<at::ScalarType>(context->saved_data["hidden_type"].toInt());
    const at::Tensor low_VC = weight_VC.to(low_NC.scalar_type()), gradient_N = gradients[0].to(at::kFloat);
    at::Tensor dhidden_NC, dweight_VC;
    if (context->needs_input_grad(0)) dhidden_NC = at::empty(low_NC.sizes(), low_NC.options().dtype(hidden_type));
    if (context->needs_input_grad(1)) dweight_VC = at::zeros(low_VC.sizes(), low_VC.options().dtype(at::kFloat));
    for_chunks(low_NC.size(0), rows_at_a_time(low_VC.size(0)), [&](std::int64_t first, std::int64_t count) {
      const at::Tensor part_nC = low_NC.narrow(0, first, count);
      const at::Tensor gradient_n1 = gradient_N.narrow(0, first, count).unsqueeze(1);
      const at::Tensor target_n1 = target_N.narrow(0, first, count).unsqueeze(1);
      at::Tensor dlogits_nV = at::softmax(at::linear(part_nC, low_VC).to(at::kFloat), 1).mul_(gradient_n1.neg());
      dlogits_nV.scatter_(1, target_n1, dlogits_nV.gather(1, target_n1) + gradient_n1);
      dlogits_nV = dlogits_nV.to(low_NC.scalar_type());
      if (dhidden_NC.defined()) dhidden_NC.narrow(0, first, count).copy_(dlogits_nV.mm(low_VC));
      if (dweight_VC.defined()) dweight_VC.add_(dlogits_nV.t().mm(part_nC));
    });
    if (dweight_VC.defined()) dweight_VC = dweight_VC.to(weight_VC.scalar_type());
    return {dhidden_NC, dweight_VC, at::Tensor()};
  }
};

}  // namespace

at::Tensor token_logps(const at::Tensor& hidden_NC, const at::Tensor& weight_VC, const at::Tensor& target_N) {
  return TokenLogps::apply(hidden_NC, weight_VC, target_N);
}

at::Tensor token_logps(const at::Tensor& logits_NV, const at::Tensor& target_N) {
  const at::Tensor logps_NV = at::log_softmax(logits_NV.to(at::kFloat), 1);
  return logps_NV.gather(1, target_N.unsqueeze(1)).squeeze(1);
}

}  // namespace components::loss
