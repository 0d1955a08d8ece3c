// N: rows   C: features   V: classes

#include "components/loss/projected_cross_entropy.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "components/loss/rows/ready_gradients.h"
#include "components/loss/rows/row_losses.h"
#include "components/ops/bf16_weight_cache.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/matmul.h"
#include "components/ops/reused_memory.h"
#include "components/ops/torch_bridge.h"
#include "components/tensor/device.h"
#include "components/tensor/meta_pass.h"

namespace components::loss {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::lowered;
using kernels::new_like;
using kernels::new_tensor;
using kernels::parallel_for_rows;

constexpr std::int64_t kCachedBytes = 8 << 20;

/// What of the gradients is asked for.
struct Wanted {
  bool hidden, weight;
};

struct Found {
  double loss = 0;
  at::Tensor dhidden, dweight;  // undefined where not asked for
};

/// Rows of logits that are held at a time. Few enough for the caches while they are read again and again; but each
/// chunk goes over the weight's gradient once, so that no fewer than C of them are worth it, if these are not too
/// large. `of_weight`: whether that gradient is asked for.
std::int64_t rows_at_a_time(std::int64_t width, std::int64_t of_row, bool of_weight) {
  const std::int64_t cached = std::max<std::int64_t>(1, kCachedBytes / of_row);
  return of_weight ? std::clamp<std::int64_t>(width, cached, std::max<std::int64_t>(1, kLogitsBytes / of_row)) : cached;
}

/// The weight and the memory that its gradient may take.
struct Weight {
  at::Tensor low_VC;    // in the type of the products; dropped as early as may be
  at::ScalarType type;  // its own, and that of its gradient
  ReusedMemory& memory;

  /// Where weights are whole all the time, so are their gradients, and this one ends as it is added to those.
  at::Tensor make_gradient(std::array<std::int64_t, 2> shape, at::ScalarType of) const {
    const bool is_fresh = keeps_low_weights() || MetaPass::is_on();
    if (!is_fresh) return memory.matrix(shape[0], shape[1], of);
    return of == at::kFloat ? new_tensor<float>({shape[0], shape[1]}) : new_tensor<Bf16>({shape[0], shape[1]});
  }
};

/// The same numbers rounded to bfloat16, in the memory of `matrix`, which must be its last owner.
at::Tensor narrowed(at::Tensor matrix) {
  const std::int64_t rows = matrix.size(0), width = matrix.size(1);
  const at::Tensor low = at::empty({0}, matrix.options().dtype(at::kBFloat16));
  low.set_(matrix.storage(), 0, {rows, width}, {width, 1});
  const std::int64_t most =
      std::max<std::int64_t>(1, kCachedBytes / (width * static_cast<std::int64_t>(sizeof(float))));
  for (std::int64_t row = 0; row < rows; row += most) {
    const std::int64_t count = std::min(most, rows - row);
    low.narrow(0, row, count).copy_(lowered<Bf16>(matrix.narrow(0, row, count)));
  }
  return low;
}

/// Gradients have the inputs' own types.
template <typename T>
Found compute(const at::Tensor& hidden_NC, Weight weight, const RowTargets& targets, double gradient, Wanted wanted) {
  Found found;
  const bool in_float = hidden_NC.scalar_type() == at::kFloat;
  const at::Tensor low_NC = lowered<T>(hidden_NC);
  const std::int64_t rows = low_NC.size(0), classes = weight.low_VC.size(0);
  const std::int64_t most =
      rows_at_a_time(low_NC.size(1), classes * static_cast<std::int64_t>(sizeof(T)), wanted.weight);
  const std::int64_t chunks = (rows + most - 1) / most;  // of one size: the last one should not be a handful of rows
  // Sums of several chunks are float32 where the hidden states are.
  const auto type_of_sums = in_float && chunks > 1 ? at::kFloat : weight.type;
  if (wanted.hidden) found.dhidden = in_float ? new_like<float>(hidden_NC) : new_like<Bf16>(hidden_NC);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t first = rows * chunk / chunks, size = rows * (chunk + 1) / chunks - first;
    const at::Tensor part_NC = low_NC.narrow(0, first, size);
    const at::Tensor logits_NV = product(part_NC, weight.low_VC.t());
    std::vector<double> losses(static_cast<std::size_t>(at::get_num_threads()));
    parallel_for_rows(size, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      losses[static_cast<std::size_t>(piece)] =
          row_losses(data<T>(logits_NV) + begin * classes, targets, first + begin, gradient, end - begin, classes);
    });
    for (const double loss : losses) found.loss += loss;
    if (wanted.hidden) matmul_into(found.dhidden.narrow(0, first, size), logits_NV, weight.low_VC, false);
    if (!wanted.weight) continue;
    if (chunk + 1 == chunks) weight.low_VC.reset();
    if (chunk == 0) found.dweight = weight.make_gradient({classes, low_NC.size(1)}, type_of_sums);
    matmul_into(found.dweight, logits_NV.t(), part_NC, chunk > 0);
  }
  if (found.dweight.defined() && type_of_sums != weight.type) found.dweight = narrowed(std::move(found.dweight));
  return found;
}

}  // namespace

bool projected_cross_entropy_fits(const at::Tensor& hidden, const at::Tensor& weight_VC, double smoothing) {
  const auto type = hidden.scalar_type();
  const bool is_low = weight_VC.scalar_type() == at::kBFloat16 && type == at::kFloat && lowers_to_bf16();
  const bool fits = supports_own_kernels(hidden) && hidden.numel() > 0 && (weight_VC.scalar_type() == type || is_low) &&
                    weight_VC.is_contiguous() && fused_kernels_fit_autocast();
  const bool wanted = torch::autograd::compute_requires_grad(hidden, weight_VC);
  if (type == at::kFloat && smoothing == 0.0 && wanted) return fits;
  const std::int64_t logits = hidden.numel() / hidden.size(-1) * weight_VC.size(0);
  return fits && (type == at::kFloat || type == at::kBFloat16) &&
         logits * static_cast<std::int64_t>(sizeof(float)) > kWholeBytes;
}

at::Tensor projected_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight_VC, Bf16WeightCache& low_VC,
                                   ReusedMemory& memory, const at::Tensor& target, const ProjectedOptions& options) {
  const bool is_bf16 = hidden.scalar_type() == at::kBFloat16, lowers = !is_bf16 && lowers_to_bf16();
  const Wanted wanted{torch::autograd::compute_requires_grad(hidden),
                      torch::autograd::compute_requires_grad(weight_VC)};
  const double gradient = options.gradient != 0.0 ? options.gradient : 1.0;
  Found found;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    const at::Tensor rows = hidden.reshape({-1, hidden.size(-1)}).contiguous(), dense = target.contiguous();
    const RowTargets targets{static_cast<const std::int64_t*>(dense.const_data_ptr()), options.ignored,
                             options.smoothing};
    const auto low = [&] {
      if (!lowers || weight_VC.scalar_type() == at::kBFloat16) return weight_VC;
      return keeps_low_weights() ? low_VC.in_bf16(weight_VC) : kernels::lowered<Bf16>(weight_VC);
    };
    Weight weight{low(), weight_VC.scalar_type(), memory};
    found = is_bf16 || lowers ? compute<Bf16>(rows, std::move(weight), targets, gradient, wanted)
                              : compute<float>(rows, std::move(weight), targets, gradient, wanted);
    if (found.dhidden.defined()) found.dhidden = found.dhidden.view(hidden.sizes());
  }
  return with_ready_gradients(found.loss, gradient, {{hidden, found.dhidden}, {weight_VC, found.dweight}});
}

}  // namespace components::loss
