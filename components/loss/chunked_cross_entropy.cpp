// N: rows   C: features   V: classes   n: rows of a chunk

#include "components/loss/chunked_cross_entropy.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>

#include "components/loss/rows/logits_chunks.h"
#include "components/loss/rows/row_losses.h"
#include "components/tensor/device.h"

namespace components::loss {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

/// What of the gradients is asked for.
struct Wanted {
  bool hidden, weight;
  bool any() const { return hidden || weight; }
};

/// Each chunk goes over the weight's gradient once: few of them, of as much memory as the hidden states take. Two at
/// least.
std::int64_t rows_at_a_time(std::int64_t rows, std::int64_t width, std::int64_t classes) {
  const std::int64_t most = std::max(kLogitsBytes / (classes * kFloatBytes), rows * width / classes);
  return std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(1, (rows + 1) / 2));
}

class ChunkedCrossEntropy final : public torch::autograd::Function<ChunkedCrossEntropy> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden_NC, const at::Tensor& weight_VC,
                            const at::Tensor& target_N, const ProjectedOptions& o, const Wanted& wanted) {
    const at::ScalarType type = product_type(hidden_NC);
    const at::Tensor low_NC = hidden_NC.to(type), low_VC = weight_VC.to(type);
    const std::int64_t rows = low_NC.size(0), classes = low_VC.size(0);
    const std::int64_t most = rows_at_a_time(rows, low_NC.size(1), classes);
    const at::ScalarType type_of_sums = rows > most ? at::kFloat : type;
    at::Tensor loss = at::zeros({}, hidden_NC.options().dtype(at::kFloat)), dhidden_NC, dweight_VC;
    if (wanted.hidden) dhidden_NC = at::empty_like(hidden_NC);
    for_chunks(rows, most, [&](std::int64_t first, std::int64_t count) {
      const at::Tensor part_nC = low_NC.narrow(0, first, count);
      const at::Tensor target_n1 = target_N.narrow(0, first, count).unsqueeze(1);
      const at::Tensor ignored_n1 = target_n1 == o.ignored, index_n1 = target_n1.masked_fill(ignored_n1, 0);
      at::Tensor logits_nV = at::linear(part_nC, low_VC).to(at::kFloat);
      at::Tensor wanted_n1 = logits_nV.gather(1, index_n1) * (1.0 - o.smoothing);
      if (o.smoothing != 0.0) wanted_n1 = wanted_n1 + logits_nV.mean(1, /*keepdim=*/true) * o.smoothing;
      const Exponentials found = exponentiate(logits_nV);
      loss.add_((found.logsumexp - wanted_n1).masked_fill(ignored_n1, 0.0).sum());
      if (!wanted.any()) return;
      // The gradient of a row's logits: softmax - (1 - s) [target] - s / V.
      logits_nV.div_(found.sums);
      logits_nV.scatter_(1, index_n1, logits_nV.gather(1, index_n1) - (1.0 - o.smoothing));
      if (o.smoothing != 0.0) logits_nV.sub_(o.smoothing / static_cast<double>(classes));
      logits_nV.mul_(o.gradient).masked_fill_(ignored_n1, 0.0);
      const at::Tensor dlogits_nV = logits_nV.to(type);
      if (wanted.hidden) dhidden_NC.narrow(0, first, count).copy_(dlogits_nV.mm(low_VC));
      if (!wanted.weight) return;
      logits_nV.reset();
      const at::Tensor of_chunk_VC = dlogits_nV.t().mm(part_nC);
      if (first == 0) {
        dweight_VC = of_chunk_VC.to(type_of_sums);
      } else {
        dweight_VC.add_(of_chunk_VC);
      }
    });
    if (dweight_VC.defined()) dweight_VC = dweight_VC.to(weight_VC.scalar_type());
    context->saved_data["hidden"] = dhidden_NC;
    context->saved_data["weight"] = dweight_VC;
    context->saved_data["gradient"] = o.gradient;
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor scale = gradients[0] / context->saved_data["gradient"].toDouble();
    variable_list found;
    for (const char* input : {"hidden", "weight"}) {
      found.push_back(context->saved_data[input].toTensor());
      if (found.back().defined()) found.back().mul_(scale);
    }
    context->saved_data.clear();
    found.resize(5);
    return found;
  }
};

}  // namespace

bool chunked_cross_entropy_fits(const at::Tensor& hidden, const at::Tensor& weight_VC) {
  const std::int64_t logits = hidden.numel() / hidden.size(-1) * weight_VC.size(0);
  return !supports_own_kernels(hidden) && logits * kFloatBytes > kWholeBytes;
}

at::Tensor chunked_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight_VC, const at::Tensor& target,
                                 const ProjectedOptions& options) {
  const Wanted wanted{torch::autograd::compute_requires_grad(hidden),
                      torch::autograd::compute_requires_grad(weight_VC)};
  ProjectedOptions known = options;
  if (known.gradient == 0.0) known.gradient = 1.0;
  return ChunkedCrossEntropy::apply(hidden.reshape({-1, hidden.size(-1)}), weight_VC, target.reshape({-1}), known,
                                    wanted);
}

}  // namespace components::loss
