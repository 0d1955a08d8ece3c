// N: rows   C: features   V: classes

#include "components/loss/projected_cross_entropy.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "components/ops/bf16_weight_cache.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/matmul.h"
#include "components/ops/torch_bridge.h"
#include "runner/core/error.h"

namespace components::loss {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::lowered;
using kernels::new_like;
using kernels::parallel_for_rows;
using torch::autograd::variable_list;

constexpr std::int64_t kCachedBytes = 8 << 20, kChunkBytes = 64 << 20;

struct Found {
  double loss = 0;
  at::Tensor dhidden, dweight;  // undefined without gradients
};

/// Rows of logits that are held at a time. Few enough for the caches while they are read again and again; but each
/// chunk goes over the weight's gradient once, so that no fewer than C of them are worth it, if these are not too
/// large.
std::int64_t rows_at_a_time(std::int64_t width, std::int64_t of_row) {
  return std::clamp<std::int64_t>(width, kCachedBytes / of_row, std::max<std::int64_t>(1, kChunkBytes / of_row));
}

/// `low_VC`: the weight in the type of the products.
template <typename T>
Found compute(const at::Tensor& hidden_NC, const at::Tensor& low_VC, const std::int64_t* target, std::int64_t ignored,
              double gradient, bool with_gradients) {
  Found found;
  const at::Tensor low_NC = lowered<T>(hidden_NC);
  const std::int64_t rows = low_NC.size(0), classes = low_VC.size(0);
  const std::int64_t most = rows_at_a_time(low_NC.size(1), classes * static_cast<std::int64_t>(sizeof(T)));
  const std::int64_t chunks = (rows + most - 1) / most;  // of one size: the last one should not be a handful of rows
  if (with_gradients) {
    found.dhidden = new_like<float>(hidden_NC);
    found.dweight = new_like<float>(low_VC);
  }
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t first = rows * chunk / chunks, size = rows * (chunk + 1) / chunks - first;
    const at::Tensor part_NC = low_NC.narrow(0, first, size);
    const at::Tensor logits_NV = product(part_NC, low_VC.t());
    std::vector<double> losses(static_cast<std::size_t>(at::get_num_threads()));
    parallel_for_rows(size, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      losses[static_cast<std::size_t>(piece)] =
          kernels::transformer<T>().cross_entropy(data<T>(logits_NV) + begin * classes, target + first + begin, ignored,
                                                  static_cast<float>(gradient), end - begin, classes);
    });
    for (const double loss : losses) found.loss += loss;
    if (!with_gradients) continue;
    matmul_into(found.dhidden.narrow(0, first, size), logits_NV, low_VC, false);
    matmul_into(found.dweight, logits_NV.t(), part_NC, chunk > 0);
  }
  return found;
}

class ProjectedCrossEntropyBackward final : public torch::autograd::Node {
 public:
  ProjectedCrossEntropyBackward(Found found, double gradient, at::IntArrayRef shape)
      : found_(std::move(found)), gradient_(gradient), shape_(shape.vec()) {}

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    variable_list of_inputs(2);
    if (!gradients[0].defined()) return of_inputs;
    RUNNER_ASSERT(found_.dhidden.defined(), "a loss's backward pass runs once");
    const auto actual = gradients[0].item<float>();
    at::Tensor dhidden = std::move(found_.dhidden), dweight = std::move(found_.dweight);
    if (const auto expected = static_cast<float>(gradient_); actual != expected) {
      dhidden.mul_(actual / expected);
      dweight.mul_(actual / expected);
    }
    if (task_should_compute_output(0)) of_inputs[0] = dhidden.view(shape_);
    if (task_should_compute_output(1)) of_inputs[1] = std::move(dweight);
    return of_inputs;
  }

  std::string name() const override { return "ProjectedCrossEntropyBackward"; }
  void release_variables() override { found_ = Found(); }

 private:
  Found found_;
  double gradient_;
  std::vector<std::int64_t> shape_;
};

}  // namespace

bool projected_cross_entropy_fits(const at::Tensor& hidden, const at::Tensor& weight_VC) {
  return hidden.scalar_type() == at::kFloat && (hidden.is_cpu() || hidden.is_meta()) && hidden.numel() > 0 &&
         weight_VC.scalar_type() == at::kFloat && weight_VC.is_contiguous() && fused_kernels_fit_autocast();
}

at::Tensor projected_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight_VC, Bf16WeightCache& low_VC,
                                   const at::Tensor& target, std::int64_t ignored, double gradient) {
  const bool bf16 = lowers_to_bf16();
  const bool wanted = torch::autograd::compute_requires_grad(hidden, weight_VC);
  Found found;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    const at::Tensor rows = hidden.reshape({-1, hidden.size(-1)}).contiguous(), dense = target.contiguous();
    const std::int64_t* of_rows = static_cast<const std::int64_t*>(dense.const_data_ptr());
    const double scale = gradient != 0.0 ? gradient : 1.0;
    found = bf16 ? compute<Bf16>(rows, low_VC.in_bf16(weight_VC), of_rows, ignored, scale, wanted)
                 : compute<float>(rows, weight_VC, of_rows, ignored, scale, wanted);
    gradient = scale;
  }
  at::Tensor sum = at::scalar_tensor(found.loss, at::TensorOptions().dtype(at::kFloat));
  if (!wanted) return sum;
  const std::shared_ptr<ProjectedCrossEntropyBackward> node(
      new ProjectedCrossEntropyBackward(std::move(found), gradient, hidden.sizes()), torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(hidden, weight_VC));
  torch::autograd::set_history(sum, node);
  return sum;
}

}  // namespace components::loss
