// N: rows of the pass   C: features of the stream   I: inputs of a linear layer   O: its outputs

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "components/kernels/transformer.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/torch_bridge.h"
#include "components/part/cached/attention.h"
#include "components/part/cached/cached.h"
#include "components/part/fused/rows.h"
#include "components/part/row_products.h"
#include "components/tensor/device.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::new_tensor;
using kernels::parallel_for_rows;

constexpr std::int64_t kSmall = 1 << 14;

/// Norms and biases are added in float32; undefined stays so.
at::Tensor whole(const at::Tensor& small) {
  return small.defined() && small.scalar_type() != at::kFloat ? small.to(at::kFloat) : small;
}

at::Tensor lowered(const at::Tensor& x, bool bf16) {
  if (!bf16) return x;
  if (x.numel() > kSmall) return kernels::lowered<Bf16>(x);
  at::Tensor low = kernels::new_like<Bf16>(x);  // waking a thread takes longer
  kernels::transformer<Bf16>().lower(data<float>(x), data<Bf16>(low), x.numel());
  return low;
}

at::Tensor norm(const at::Tensor& x_NC, const Norm& norm, bool bf16) {
  NormStatistics unused;
  const NormShape shape = shape_of(norm, x_NC.size(0));
  const at::Tensor weight = whole(norm.weight()), bias = whole(norm.bias());
  const at::Tensor normed = bf16 ? kernels::new_like<Bf16>(x_NC) : kernels::new_like<float>(x_NC);
  bf16 ? norm_rows<Bf16>(data<float>(x_NC), nullptr, weight, bias, shape, {normed, {}}, unused)
       : norm_rows<float>(data<float>(x_NC), nullptr, weight, bias, shape, {normed, {}}, unused);
  return normed;
}

/// x + branch + bias.
at::Tensor add_branch(const at::Tensor& x_NC, const at::Tensor& branch_NC, const at::Tensor& bias) {
  at::Tensor sum = new_tensor<float>({x_NC.size(0), x_NC.size(1)});
  const std::int64_t width = x_NC.size(1);
  parallel_for_rows(x_NC.size(0), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    kernels::transformer<float>().add_branch(data<float>(x_NC) + begin * width, data<float>(branch_NC) + begin * width,
                                             data<float>(bias), data<float>(sum) + begin * width, end - begin, width,
                                             {});
  });
  return sum;
}

at::Tensor activated(const at::Tensor& x, const at::Tensor& bias, const MlpOptions& o) {
  at::Tensor out = new_tensor<float>({x.size(0), o.hidden});
  const kernels::Activation activation = of_kernels(o.activation).value();
  parallel_for_rows(x.size(0), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    kernels::transformer<float>().activate({data<float>(x) + begin * x.size(1), data<float>(bias),
                                            data<float>(out) + begin * o.hidden, end - begin, o.hidden, activation,
                                            o.gated});
  });
  return out;
}

bool kernels_fit(const at::Tensor& x_NC, const CachedBlock& block) {
  const AttentionOptions& o = block.attention.options();
  return x_NC.is_cpu() && x_NC.scalar_type() == at::kFloat && block.attention.qkv().product().fits_rows() &&
         fused_kernels() && o.head % 2 == 0 && o.causal && !o.alibi &&
         of_kernels(block.mlp != nullptr ? block.mlp->options().activation : block.mixture->options().activation)
             .has_value();
}

/// Queries and keys of a joint projection, to which the bias has been added, normed where they lie.
void norm_queries(const at::Tensor& joint, const SelfAttention& attention) {
  const AttentionOptions& o = attention.options();
  const auto in_place = [&joint](const Norm& of, std::int64_t from, std::int64_t size) {
    const at::Tensor part = joint.narrow(1, from, size);
    part.copy_(norm(part.contiguous().view({-1, of.options().width}), of, false).view(part.sizes()));
  };
  in_place(*attention.q_norm(), 0, o.heads * o.head);
  in_place(*attention.k_norm(), o.heads * o.head, o.kv_heads * o.head);
}

/// The mixture of rows, [N, C] float32: of each row as if it were alone. `product` multiplies by a linear layer.
template <typename Multiply>
at::Tensor mixed_experts(const at::Tensor& rows_NC, const Mixture& mixture, bool bf16, const Multiply& product) {
  const MixtureOptions& o = mixture.options();
  const Routing routing = mixture.routed(product(rows_NC, mixture.router()));
  const ExpertRows rows = mixture.rows_of(routing);
  const MlpOptions of_expert = o.of_expert();
  const at::Tensor x_NC = lowered(rows_NC, bf16 && rows_NC.scalar_type() == at::kFloat);
  const at::Tensor sorted_MC = x_NC.index_select(0, rows.order_M.div(o.chosen, "floor"));
  const at::Tensor given_MC = new_tensor<float>({sorted_MC.size(0), o.width});
  std::int64_t first = 0;
  for (std::int64_t e = 0; e < o.experts; ++e) {
    const std::int64_t count = rows.counts[static_cast<std::size_t>(e)];
    if (count == 0) continue;
    const at::Tensor hidden =
        activated(row_products(sorted_MC.narrow(0, first, count), mixture.experts_fc().matrix(e, bf16)), {}, of_expert);
    given_MC.narrow(0, first, count).copy_(row_products(lowered(hidden, bf16), mixture.experts_proj().matrix(e, bf16)));
    first += count;
  }
  return mixture.summed(given_MC, rows, routing);
}

/// x + scale * after(branch + bias).
at::Tensor add_normed(const at::Tensor& x_NC, at::Tensor branch_NC, const at::Tensor& bias, const Norm* after,
                      double scale) {
  if (after == nullptr && scale == 1.0) return add_branch(x_NC, branch_NC, bias);
  if (bias.defined()) branch_NC = branch_NC + bias;
  if (after != nullptr) branch_NC = norm(branch_NC, *after, false);
  return add_branch(x_NC, scale == 1.0 ? branch_NC : branch_NC * scale, {});
}

at::Tensor by_kernels(const at::Tensor& x_NC, const CachedBlock& block, CachedPass& pass) {
  const Linear &qkv = block.attention.qkv(), &proj = block.attention.proj();
  const bool bf16 = qkv.product().rows_in_bf16(pass.bf16);
  const auto product = [bf16](const at::Tensor& x, const Linear& linear) {
    const at::Tensor rows = lowered(x, bf16 && x.scalar_type() == at::kFloat);
    at::Tensor y = linear.product().rows(rows);
    for (const auto& term : linear.terms()) term->add_rows(y, rows);
    return y;
  };
  const auto before = [bf16](const Norm* of, const at::Tensor& x) { return of != nullptr ? norm(x, *of, bf16) : x; };
  at::Tensor joint = product(before(block.norms.before_attention, x_NC), qkv);
  KvCache::Layer& layer = pass.cache.layer(block.number, block.attention.options(),
                                           at::TensorOptions().dtype(bf16 ? at::kBFloat16 : at::kFloat), true);
  at::Tensor bias = whole(qkv.bias());
  if (block.attention.q_norm() != nullptr) {
    if (bias.defined()) joint += bias;
    bias.reset();
    norm_queries(joint, block.attention);
  }
  const at::Tensor mixed =
      bf16 ? attend_cached<Bf16>(joint, bias, block.rotation, block.attention.options(), layer, pass)
           : attend_cached<float>(joint, bias, block.rotation, block.attention.options(), layer, pass);
  const double scale = block.residual_scale;
  const at::Tensor y_NC =
      add_normed(x_NC, product(mixed, proj), whole(proj.bias()), block.norms.after_attention, scale);
  const at::Tensor rows_NC = before(block.norms.before_mlp, y_NC);
  if (block.mixture != nullptr) {
    return add_normed(y_NC, mixed_experts(rows_NC, *block.mixture, bf16, product), {}, block.norms.after_mlp, scale);
  }
  const Linear &fc = block.mlp->fc(), &out = block.mlp->proj();
  const at::Tensor hidden = activated(product(rows_NC, fc), whole(fc.bias()), block.mlp->options());
  return add_normed(y_NC, product(hidden, out), whole(out.bias()), block.norms.after_mlp, scale);
}

/// By the parts' own operations, in the type of their weights.
at::Tensor by_parts(const at::Tensor& x_NC, const CachedBlock& block, CachedPass& pass) {
  const Linear& qkv = block.attention.qkv();
  const at::Tensor x = qkv.product().as_input(x_NC);
  const at::Tensor joint = qkv.forward(normed(block.norms.before_attention, x));
  KvCache::Layer& layer = pass.cache.layer(block.number, block.attention.options(), joint.options(), false);
  const at::Tensor mixed = attend_cached_plainly(joint, block.rotation, block.attention, layer, pass);
  const auto added = [&](const Norm* after, const at::Tensor& branch) {
    const at::Tensor out = normed(after, branch);
    return block.residual_scale == 1.0 ? out : out * block.residual_scale;
  };
  const at::Tensor y = x + added(block.norms.after_attention, block.attention.proj().forward(mixed));
  const at::Tensor rows = normed(block.norms.before_mlp, y);
  const Mixture* const mixture = block.mixture;
  return y + added(block.norms.after_mlp,
                   mixture != nullptr ? mixture->forward(rows, mixture->routing(rows)) : block.mlp->forward(rows));
}

}  // namespace

at::Tensor cached_linear(const at::Tensor& x_NI, const Linear& linear, const CachedPass& pass) {
  const Product& product = linear.product();
  if (!x_NI.is_cpu() || !fused_kernels()) return linear.forward(product.as_input(x_NI));
  const at::Tensor rows = lowered(x_NI.to(at::kFloat).contiguous(), product.rows_in_bf16(pass.bf16));
  const at::Tensor y = product.rows(rows);
  for (const auto& term : linear.terms()) term->add_rows(y, rows);
  return linear.bias().defined() ? y + whole(linear.bias()) : y;
}

at::Tensor cached_block(const at::Tensor& x_NC, const CachedBlock& block, CachedPass& pass) {
  return kernels_fit(x_NC, block) ? by_kernels(x_NC, block, pass) : by_parts(x_NC, block, pass);
}

at::Tensor cached_head(const at::Tensor& x_NC, const Norm& last_norm, const Weight& projection,
                       const CachedPass& pass) {
  std::vector<std::int64_t> last;
  std::int64_t rows = 0;
  for (const Segment& segment : pass.segments) last.push_back((rows += segment.count) - 1);
  const at::Tensor x = x_NC.index_select(0, at::tensor(last, at::kLong).to(x_NC.device()));
  if (x.is_cpu() && x.scalar_type() == at::kFloat && fused_kernels()) {
    const bool bf16 = pass.bf16 || projection.tensor().scalar_type() == at::kBFloat16;
    return row_products(norm(x, last_norm, bf16), projection.for_products(bf16, true));
  }
  const at::Tensor& weight = projection.tensor();
  return at::linear(last_norm.forward(x.to(weight.scalar_type())), weight).to(at::kFloat);
}

}  // namespace components::part
