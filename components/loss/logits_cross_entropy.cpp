// N: rows   C: classes

#include "components/loss/logits_cross_entropy.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "components/loss/rows/ready_gradients.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/torch_bridge.h"
#include "components/tensor/device.h"

namespace components::loss {
namespace {

using kernels::Bf16;

void refuse_other_classes(const at::Tensor& target_N, std::int64_t ignored, std::int64_t classes) {
  if (target_N.is_meta()) return;
  const std::int64_t* target = target_N.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < target_N.numel(); ++i) {
    TORCH_CHECK_INDEX(target[i] == ignored || (target[i] >= 0 && target[i] < classes), "Target ", target[i],
                      " is out of bounds.");
  }
}

/// Row by row, so that each is in the caches while it is copied and turned into its gradient. `gradient_NC`: undefined
/// when none is asked for.
template <typename T>
double sum_of_rows(const at::Tensor& logits_NC, const RowTargets& targets, const at::Tensor& gradient_NC) {
  const std::int64_t rows = logits_NC.size(0), classes = logits_NC.size(1);
  const at::Tensor workspace = kernels::meta_workspace(rows, classes);
  std::vector<double> losses(static_cast<std::size_t>(at::get_num_threads()));
  kernels::parallel_for_rows(rows, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    std::vector<T> room(gradient_NC.defined() ? 0 : static_cast<std::size_t>(classes));
    for (std::int64_t row = begin; row < end; ++row) {
      T* const to = gradient_NC.defined() ? kernels::data<T>(gradient_NC) + row * classes : room.data();
      std::memcpy(static_cast<void*>(to), kernels::data<T>(logits_NC) + row * classes,
                  static_cast<std::size_t>(classes) * sizeof(T));
      losses[static_cast<std::size_t>(piece)] += row_losses(to, targets, row, 1.0, 1, classes);
    }
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

}  // namespace

bool logits_cross_entropy_fits(const at::Tensor& logits_NC) {
  const auto type = logits_NC.scalar_type();
  return fused_kernels() && supports_own_kernels(logits_NC) && logits_NC.is_contiguous() &&
         (type == at::kFloat || type == at::kBFloat16) &&
         logits_NC.numel() * static_cast<std::int64_t>(sizeof(float)) > kWholeBytes;
}

at::Tensor logits_cross_entropy(const at::Tensor& logits_NC, const at::Tensor& target_N, std::int64_t ignored,
                                double smoothing) {
  const bool wanted = torch::autograd::compute_requires_grad(logits_NC);
  at::Tensor gradient_NC;
  double loss = 0;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor dense = target_N.contiguous();
    refuse_other_classes(dense, ignored, logits_NC.size(1));
    const RowTargets targets{static_cast<const std::int64_t*>(dense.const_data_ptr()), ignored, smoothing};
    const bool bf16 = logits_NC.scalar_type() == at::kBFloat16;
    if (wanted) gradient_NC = bf16 ? kernels::new_like<Bf16>(logits_NC) : kernels::new_like<float>(logits_NC);
    loss =
        bf16 ? sum_of_rows<Bf16>(logits_NC, targets, gradient_NC) : sum_of_rows<float>(logits_NC, targets, gradient_NC);
  }
  return with_ready_gradients(loss, 1.0, {{logits_NC, gradient_NC}});
}

}  // namespace components::loss
