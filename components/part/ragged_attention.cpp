// B: samples   T: positions   H: heads   K: heads of keys and values   D: features of a head   N: positions of all rows

#include "components/part/ragged_attention.h"

#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "components/tensor/device.h"
#include "components/tensor/row_notes.h"
#include "components/tensor/tensors.h"

namespace components::part {
namespace {

// at::SDPBackend and sdp::CustomMaskType, whose headers are CUDA's.
constexpr std::int64_t kFlash = 1, kCudnn = 3, kCausalFromTopLeft = 1;

/// The kernels read vectors of this many features.
constexpr std::int64_t kFeaturesMultiple = 8, kFlashFeaturesMax = 256;

/// LibTorch knows what this GPU has kernels of.
bool takes_flash(const at::Tensor& q_1HND) {
  if (q_1HND.scalar_type() != at::kHalf && q_1HND.scalar_type() != at::kBFloat16) return false;
  if (q_1HND.size(3) > kFlashFeaturesMax) return false;
  const std::int64_t choice = at::_fused_sdp_choice(q_1HND, q_1HND, q_1HND, {}, 0.0, /*is_causal=*/true);
  return choice == kFlash || choice == kCudnn;
}

/// With zeros behind the features of each head.
at::Tensor widened(const at::Tensor& x, std::int64_t features) {
  return x.size(-1) == features ? x : at::constant_pad_nd(x, {0, features - x.size(-1)});
}

at::Tensor repeated(const at::Tensor& x_NKD, std::int64_t heads) {
  const std::int64_t shared = x_NKD.size(1);
  if (shared == heads) return x_NKD;
  return x_NKD.unsqueeze(2)
      .expand({x_NKD.size(0), shared, heads / shared, x_NKD.size(2)})
      .reshape({x_NKD.size(0), heads, x_NKD.size(2)});
}

using Window = std::optional<std::int64_t>;

/// The graph that LibTorch itself makes of _efficient_attention_forward forgets the window in the backward pass.
class Efficient final : public torch::autograd::Function<Efficient> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q_1NHD,
                            const at::Tensor& k_1NHD, const at::Tensor& v_1NHD, const at::Tensor& begins,
                            std::int64_t longest, double dropout, double scale, const Window& window,
                            bool wants_gradient) {
    const auto [out, logsumexp, seed, offset, longest_q, longest_k] = at::_efficient_attention_forward(
        q_1NHD, k_1NHD, v_1NHD, {}, begins, begins, longest, longest, dropout, kCausalFromTopLeft,
        /*compute_log_sumexp=*/wants_gradient, scale, {}, window);
    if (wants_gradient) {
      context->save_for_backward({q_1NHD, k_1NHD, v_1NHD, begins, out, logsumexp, seed, offset});
      context->saved_data["longest"] = longest;
      context->saved_data["dropout"] = dropout;
      context->saved_data["scale"] = scale;
      context->saved_data["window"] = window;
    }
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const torch::autograd::variable_list x = context->get_saved_variables();
    auto& of = context->saved_data;
    const std::int64_t longest = of["longest"].toInt();
    const auto [dq, dk, dv, dbias] = at::_efficient_attention_backward(
        gradients[0].contiguous(), x[0], x[1], x[2], {}, x[4], x[3], x[3], longest, longest, x[5],
        of["dropout"].toDouble(), x[6], x[7], kCausalFromTopLeft, /*bias_requires_grad=*/false, of["scale"].toDouble(),
        {}, of["window"].toOptional<std::int64_t>());
    torch::autograd::variable_list found = {dq, dk, dv};
    found.resize(9);
    return found;
  }
};

/// Documents one after the other, [N, H, D] and [N, K, D].
struct Documents {
  at::Tensor q, k, v, begins;
  std::int64_t longest;
};

at::Tensor by_flash(const Documents& of, const AttentionOptions& o, double dropout, bool narrow) {
  const Window left = narrow ? Window(o.window - 1) : std::nullopt, right = narrow ? Window(0) : std::nullopt;
  return std::get<0>(
      at::_flash_attention_forward(of.q, of.k, of.v, of.begins, of.begins, of.longest, of.longest, dropout,
                                   /*is_causal=*/true, /*return_debug_mask=*/false, o.scale, left, right));
}

at::Tensor by_efficient(const Documents& of, const AttentionOptions& o, double dropout, bool narrow) {
  const Window window = narrow ? Window(o.window) : std::nullopt;
  const at::Tensor k_NHD = repeated(of.k, o.heads), v_NHD = repeated(of.v, o.heads);
  const bool wants_gradient = torch::autograd::compute_requires_grad(of.q, k_NHD, v_NHD);
  return Efficient::apply(of.q.unsqueeze(0), k_NHD.unsqueeze(0), v_NHD.unsqueeze(0), of.begins, of.longest, dropout,
                          o.scale, window, wants_gradient)
      .squeeze(0);
}

/// What a plan measures in place of the kernels: as much memory.
at::Tensor by_shapes(const Documents& of, const AttentionOptions& o) {
  const bool shares = of.q.element_size() == 2;  // flash reads heads that are shared
  const auto row = [](const at::Tensor& x_NHD) { return x_NHD.transpose(0, 1).unsqueeze(0); };
  const at::Tensor k = shares ? of.k : repeated(of.k, o.heads), v = shares ? of.v : repeated(of.v, o.heads);
  return at::scaled_dot_product_attention(row(of.q), row(k), row(v), {}, 0.0, /*is_causal=*/true, o.scale)
      .squeeze(0)
      .transpose(0, 1);
}

}  // namespace

std::optional<RaggedRows> ragged_rows(const TensorMap& batch) {
  const at::Tensor* const begins = batch.find(kDocumentBegins);
  if (begins == nullptr) return std::nullopt;
  const at::Tensor* const places = batch.find(kRealPlaces);
  return RaggedRows{*begins, batch.at(kLongestDocument).item<std::int64_t>(),
                    places != nullptr ? *places : at::Tensor()};
}

bool fits_ragged(const at::Tensor& q_BTHD, std::int64_t seen, const AttentionOptions& o, const AttentionPass& pass) {
  const bool adds = o.alibi || pass.bias != nullptr;
  if (supports_own_kernels(q_BTHD) || !o.causal || adds || o.cap > 0 || q_BTHD.size(1) != seen) return false;
  const bool has_notes = pass.rows != nullptr || q_BTHD.is_meta();
  const bool needs_notes = pass.mask.defined() || pass.positions != nullptr;
  return needs_notes ? has_notes : o.window > 0 && seen > o.window;
}

at::Tensor attend_ragged(const at::Tensor& q_BTHD, const at::Tensor& k_BTKD, const at::Tensor& v_BTKD,
                         const AttentionOptions& o, const AttentionPass& pass) {
  const std::int64_t batch = q_BTHD.size(0), positions = q_BTHD.size(1), all = batch * positions;
  const std::int64_t features = (o.head + kFeaturesMultiple - 1) / kFeaturesMultiple * kFeaturesMultiple;
  const at::TensorOptions on = q_BTHD.options();
  at::Tensor places;
  if (pass.rows != nullptr) {
    places = pass.rows->real_places;
  } else if (q_BTHD.is_meta() && pass.mask.defined()) {
    places = at::empty({all}, on.dtype(at::kLong));
  }
  const auto in_one_row = [&](const at::Tensor& x) {
    const at::Tensor flat = x.reshape({all, x.size(2), x.size(3)});
    return widened(places.defined() ? flat.index_select(0, places) : flat, features);
  };
  const at::Tensor begins =
      pass.rows != nullptr ? pass.rows->begins : at::arange(0, all + 1, positions, on.dtype(at::kInt));
  const Documents documents{in_one_row(q_BTHD), in_one_row(k_BTKD), in_one_row(v_BTKD), begins,
                            pass.rows != nullptr ? pass.rows->longest : positions};
  const bool narrow = o.window > 0 && o.window < documents.longest;
  const double dropout = pass.dropout ? pass.rate : 0.0;
  at::Tensor mixed_NHD = q_BTHD.is_meta() ? by_shapes(documents, o)
                         : takes_flash(documents.q.transpose(0, 1).unsqueeze(0))
                             ? by_flash(documents, o, dropout, narrow)
                             : by_efficient(documents, o, dropout, narrow);
  if (features != o.head) mixed_NHD = mixed_NHD.narrow(2, 0, o.head);
  if (places.defined()) {
    const at::Tensor own_NHD = repeated(v_BTKD.reshape({all, v_BTKD.size(2), o.head}), o.heads);
    mixed_NHD = own_NHD.index_copy(0, places, mixed_NHD);
  }
  return mixed_NHD.reshape({batch, positions, o.heads, o.head});
}

}  // namespace components::part
