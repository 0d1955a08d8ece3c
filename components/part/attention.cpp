// B: samples   T: positions that look   S: positions looked at   H: heads   K: heads of keys and values   D: features

#include "components/part/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_not.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/promote_types.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cmath>
#include <limits>
#include <vector>

#include "components/part/heads.h"
#include "components/part/ragged_attention.h"
#include "components/tensor/device.h"
#include "components/tensor/tensors.h"

namespace components::part {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Each head's keys and values as often as heads of queries share them, [B, K, S, D] to [B, H, S, D].
at::Tensor repeated(const at::Tensor& x_BKSD, std::int64_t heads) {
  const std::int64_t batch = x_BKSD.size(0), shared = x_BKSD.size(1);
  if (shared == heads) return x_BKSD;
  return x_BKSD.unsqueeze(2)
      .expand({batch, shared, heads / shared, x_BKSD.size(2), x_BKSD.size(3)})
      .reshape({batch, heads, x_BKSD.size(2), x_BKSD.size(3)});
}

/// How far each position that is looked at lies behind the one that looks, [T, S]; the last ones meet.
at::Tensor distances(std::int64_t positions, std::int64_t seen, const at::TensorOptions& options) {
  const at::Tensor of_seen = at::arange(seen, options), of_positions = at::arange(positions, options);
  return (of_positions + (seen - positions)).unsqueeze(1) - of_seen.unsqueeze(0);
}

/// True where both positions are of the same document, [B, 1, T, T].
at::Tensor same_document(const at::Tensor& positions_BT) {
  const at::Tensor document_BT = (positions_BT == 0).cumsum(1);
  return (document_BT.unsqueeze(2) == document_BT.unsqueeze(1)).unsqueeze(1);
}

/// True where a position may look, [B or 1, 1, T, S]; undefined when it may look everywhere that `causal` lets it.
/// Of bools, which bitwise operations take as logical ones do; those have no form on the meta device.
at::Tensor visible(std::int64_t positions, std::int64_t seen, const at::TensorOptions& on, const AttentionOptions& o,
                   const AttentionPass& pass) {
  const at::Tensor& mask_BS = pass.mask;
  const bool narrow = o.window > 0 && seen > o.window;
  const bool shifted = o.causal && positions != seen;
  if (!narrow && !shifted && !mask_BS.defined() && pass.positions == nullptr) return {};
  const at::Tensor behind_TS = distances(positions, seen, on.dtype(at::kLong));
  at::Tensor may_TS = at::ones({positions, seen}, on.dtype(at::kBool));
  if (o.causal) may_TS = may_TS.bitwise_and(behind_TS >= 0);
  if (narrow) may_TS = may_TS.bitwise_and(o.causal ? behind_TS < o.window : behind_TS.abs() <= o.window);
  at::Tensor may = may_TS.unsqueeze(0).unsqueeze(0);
  if (pass.positions != nullptr) may = may.bitwise_and(same_document(*pass.positions));
  if (mask_BS.defined()) {
    may = may.bitwise_and(mask_BS.to(at::kBool).unsqueeze(1).unsqueeze(1));
    // A row of a softmax with nothing in it is no number.
    may = may.bitwise_or((behind_TS == 0).bitwise_and(may.any(-1, /*keepdim=*/true).bitwise_not()));
  }
  return may;
}

/// What ALiBi adds to the scores, [H, T, S].
at::Tensor alibi_bias(std::int64_t positions, std::int64_t seen, std::int64_t heads, const at::TensorOptions& on) {
  // Heads beyond a power of two take every other slope of the next one.
  const std::int64_t whole = std::int64_t{1} << static_cast<int>(std::floor(std::log2(static_cast<double>(heads))));
  std::vector<float> slopes;
  for (std::int64_t h = 0; h < heads; ++h) {
    const double exponent = h < whole ? -8.0 * static_cast<double>(h + 1) / static_cast<double>(whole)
                                      : -4.0 * static_cast<double>(2 * (h - whole) + 1) / static_cast<double>(whole);
    slopes.push_back(static_cast<float>(std::exp2(exponent)));
  }
  const at::Tensor slopes_H11 = at::tensor(slopes).to(on.device()).view({heads, 1, 1});
  return slopes_H11 * distances(positions, seen, on.dtype(at::kFloat)).abs().neg().unsqueeze(0);
}

/// By plain operations in float32 at least; LibTorch's own draws its masks, and caps no scores.
at::Tensor attend_by_scores(const at::Tensor& q_BHTD, const at::Tensor& k_BHSD, const at::Tensor& v_BHSD,
                            const AttentionOptions& o, const at::Tensor& may, const at::Tensor& bias,
                            const AttentionPass& pass) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  const auto type = at::promote_types(q_BHTD.scalar_type(), at::kFloat);
  const std::int64_t positions = q_BHTD.size(2), seen = k_BHSD.size(2);
  const at::Tensor scaled_BHTD = q_BHTD.to(type) * o.scale;
  at::Tensor scores_BHTS = at::matmul(scaled_BHTD, k_BHSD.to(type).transpose(2, 3));
  if (o.cap > 0) scores_BHTS = at::tanh(scores_BHTS / o.cap) * o.cap;
  if (bias.defined()) scores_BHTS = scores_BHTS + bias;
  if (may.defined()) {
    scores_BHTS = scores_BHTS.masked_fill(may.bitwise_not(), kNever);
  } else if (o.causal) {
    scores_BHTS.masked_fill_(at::ones({positions, seen}, q_BHTD.options().dtype(at::kBool)).triu(1), kNever);
  }
  at::Tensor weights_BHTS = at::softmax(scores_BHTS, -1);
  if (pass.dropout) weights_BHTS = weights_BHTS * pass.dropout->factors_like(weights_BHTS, pass.number);
  return at::matmul(weights_BHTS, v_BHSD.to(type)).to(q_BHTD.scalar_type());
}

}  // namespace

at::Tensor attend(const at::Tensor& q_BTHD, const at::Tensor& k_BSKD, const at::Tensor& v_BSKD,
                  const AttentionOptions& o, const AttentionPass& pass) {
  const std::int64_t batch = q_BTHD.size(0), positions = q_BTHD.size(1), seen = k_BSKD.size(1);
  if (fits_ragged(q_BTHD, seen, o, pass)) {
    return attend_ragged(q_BTHD, k_BSKD, v_BSKD, o, pass).reshape({batch, positions, o.heads * o.head});
  }
  const at::Tensor q_BHTD = q_BTHD.transpose(1, 2);
  const at::Tensor k_BHSD = repeated(k_BSKD.transpose(1, 2), o.heads);
  const at::Tensor v_BHSD = repeated(v_BSKD.transpose(1, 2), o.heads);
  const at::TensorOptions on = at::TensorOptions().device(q_BTHD.device());
  const at::Tensor may = visible(positions, seen, on, o, pass);
  const at::Tensor bias = pass.bias != nullptr ? *pass.bias
                          : o.alibi            ? alibi_bias(positions, seen, o.heads, on)
                                               : at::Tensor();
  at::Tensor mixed_BHTD;
  // LibTorch's own of the CPU gives no gradient of a bias.
  if (o.cap > 0 || ((pass.dropout || pass.bias != nullptr) && supports_own_kernels(q_BTHD))) {
    mixed_BHTD = attend_by_scores(q_BHTD, k_BHSD, v_BHSD, o, may, bias, pass);
  } else {
    at::Tensor mask = may;
    if (bias.defined()) {
      const at::Tensor shown = may.defined() ? may
                               : o.causal
                                   ? (distances(positions, seen, on.dtype(at::kLong)) >= 0).unsqueeze(0).unsqueeze(0)
                                   : at::ones({1, 1, positions, seen}, on.dtype(at::kBool));
      mask = at::where(shown, bias.to(q_BHTD.scalar_type()), kNever);
    }
    const bool whole_past = o.causal && !mask.defined();
    mixed_BHTD = at::scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD,
                                                  mask.defined() ? std::optional<at::Tensor>(mask) : std::nullopt,
                                                  pass.dropout ? pass.rate : 0.0, whole_past, o.scale);
  }
  return mixed_BHTD.transpose(1, 2).reshape({batch, positions, o.heads * o.head});
}

namespace {

std::optional<Init> zeros_if(bool wanted) { return wanted ? std::make_optional(constant(0.0)) : std::nullopt; }

NormOptions norm_of(const SelfAttentionOptions& options, std::int64_t heads) {
  NormOptions norm = options.norm;
  norm.width = options.query_norm == QueryNorm::kAll ? heads * options.of.head : options.of.head;
  return norm;
}

}  // namespace

SelfAttention::SelfAttention(Declared& declared, const std::string& name, const SelfAttentionOptions& options)
    : options_(options.of),
      qkv_(declared, name + "_qkv",
           {options.width, (options.of.heads + 2 * options.of.kv_heads) * options.of.head, options.in,
            zeros_if(options.qkv_bias)}),
      proj_(declared, name + "_proj",
            {options.of.heads * options.of.head, options.width, options.out, zeros_if(options.out_bias)}),
      query_norm_(options.query_norm) {
  if (query_norm_ == QueryNorm::kNone) return;
  q_norm_.emplace(declared, name + "_q_norm", norm_of(options, options.of.heads));
  k_norm_.emplace(declared, name + "_k_norm", norm_of(options, options.of.kv_heads));
}

Heads SelfAttention::heads(const at::Tensor& qkv) const {
  const std::int64_t batch = qkv.size(0), positions = qkv.size(1), head = options_.head;
  at::Tensor q_BTHD, k_BTKD, v_BTKD;
  if (options_.heads == options_.kv_heads) {
    // Split along the third dimension: a single copy concatenates the gradients.
    const std::vector<at::Tensor> parts = qkv.view({batch, positions, 3, options_.heads, head}).unbind(2);
    q_BTHD = parts[0];
    k_BTKD = parts[1];
    v_BTKD = parts[2];
  } else {
    const std::vector<at::Tensor> parts =
        qkv.view({batch, positions, options_.heads + 2 * options_.kv_heads, head})
            .split_with_sizes({options_.heads, options_.kv_heads, options_.kv_heads}, 2);
    q_BTHD = parts[0];
    k_BTKD = parts[1];
    v_BTKD = parts[2];
  }
  if (q_norm_) {
    const auto normed = [&](const Norm& norm, const at::Tensor& x) {
      if (query_norm_ == QueryNorm::kHead) return norm.forward(x);
      return norm.forward(x.reshape({batch, positions, x.size(2) * head})).view(x.sizes());
    };
    q_BTHD = normed(*q_norm_, q_BTHD);
    k_BTKD = normed(*k_norm_, k_BTKD);
  }
  return {q_BTHD, k_BTKD, v_BTKD};
}

at::Tensor SelfAttention::forward(const at::Tensor& x_BTC, const Rotation* rotation, const AttentionPass& pass) const {
  return proj_.forward(mix(qkv_.forward(x_BTC), rotation, pass));
}

at::Tensor SelfAttention::mix(const at::Tensor& qkv, const Rotation* rotation, const AttentionPass& pass) const {
  auto [q_BTHD, k_BTKD, v_BTKD] = heads(qkv);
  if (rotation != nullptr) {
    const at::Tensor positions_BT = pass.positions != nullptr ? *pass.positions : at::Tensor();
    q_BTHD = rotate(q_BTHD, *rotation, positions_BT).to(v_BTKD.scalar_type());
    k_BTKD = rotate(k_BTKD, *rotation, positions_BT).to(v_BTKD.scalar_type());
  }
  return attend(q_BTHD, k_BTKD, v_BTKD, options_, pass);
}

}  // namespace components::part
