// B: samples   T: positions   C: features   H: heads   D: features of a head   N: B * T

#include "components/model/fused_transformer.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "components/model/causal_attention.h"
#include "components/ops/bf16_weight_cache.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/matmul.h"
#include "components/ops/torch_bridge.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::model {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::new_like;
using kernels::new_tensor;
using kernels::parallel_for_rows;
using kernels::PieceSums;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

/// Places of the inputs in the graph.
enum Input { kX, kLn1W, kLn1B, kQkvW, kQkvB, kProjW, kProjB, kLn2W, kLn2B, kFcW, kFcB, kOutW, kOutB, kInputs };
using Inputs = std::array<at::Tensor, kInputs>;

struct Sizes : AttentionShape {
  double eps;
};

/// Of a block's dropout; masks that leave nothing out where there is none.
struct Masks {
  kernels::DropMask attention, projection, mlp;
};

Masks masks_of(const std::optional<Dropout>& dropout) {
  if (!dropout) return {};
  return {dropout->mask(kOfAttention), dropout->mask(kOfProjection), dropout->mask(kOfMlp)};
}

/// What the backward pass needs of the forward pass.
struct Kept {
  at::Tensor normed_1, mean_1, rstd_1;  // [N, C], [N], [N]
  at::Tensor q, k, v, probs;            // [BH, T, D] three times; of causal_attention()
  at::Tensor mixed;                     // [N, C], what attention gives
  at::Tensor y;                         // [N, C] float32, the stream between attention and MLP
  at::Tensor normed_2, mean_2, rstd_2;
  at::Tensor hidden, active;              // [N, 4C], before its bias and GELU, and after
  at::Tensor qkv_w, proj_w, fc_w, out_w;  // in the type of the products
};

template <typename T>
void norm(const float* x, const at::Tensor& branch, const at::Tensor& branch_bias, const at::Tensor& sum,
          const at::Tensor& weight, const at::Tensor& bias, const Sizes& s, const kernels::DropMask& drop,
          at::Tensor& normed, at::Tensor& mean, at::Tensor& rstd) {
  normed = new_tensor<T>({s.rows(), s.features()});
  mean = new_tensor<float>({s.rows()});
  rstd = new_tensor<float>({s.rows()});
  parallel_for_rows(s.rows(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * s.features();
    kernels::transformer<T>().layer_norm({x + at, branch.defined() ? data<T>(branch) + at : nullptr,
                                          data<float>(branch_bias), sum.defined() ? data<float>(sum) + at : nullptr,
                                          data<float>(weight), data<float>(bias), s.eps, data<T>(normed) + at,
                                          data<float>(mean) + begin, data<float>(rstd) + begin, end - begin,
                                          s.features(), drop.from_row(begin)});
  });
}

template <typename T>
at::Tensor attend(const at::Tensor& qkv, const at::Tensor& bias, const at::Tensor& cos, const at::Tensor& sin,
                  const Sizes& s, const kernels::DropMask& drop, Kept& kept) {
  for (at::Tensor* part : {&kept.q, &kept.k, &kept.v}) *part = new_tensor<T>({s.samples(), s.positions, s.head});
  const std::int64_t of_sample = s.positions * s.features();
  parallel_for_rows(s.batch, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      kernels::transformer<T>().split_heads({data<T>(qkv) + b * 3 * of_sample, data<float>(bias), data<float>(cos),
                                             data<float>(sin), data<T>(kept.q) + b * of_sample,
                                             data<T>(kept.k) + b * of_sample, data<T>(kept.v) + b * of_sample,
                                             s.positions, s.heads, s.head});
    }
  });
  return causal_attention<T>(kept.q, kept.k, kept.v, s, drop, kept.probs);
}

template <typename T>
at::Tensor for_products(const at::Tensor& weight, Bf16WeightCache& low) {
  if constexpr (std::is_same_v<T, float>) {
    return weight;
  } else {
    return low.in_bf16(weight);
  }
}

template <typename T>
at::Tensor forward(const Inputs& in, const TransformerWeights& w, const at::Tensor& cos, const at::Tensor& sin,
                   const Sizes& s, const Masks& drop, Kept& kept) {
  kept.qkv_w = for_products<T>(w.qkv_weight, w.qkv_low);
  kept.proj_w = for_products<T>(w.proj_weight, w.proj_low);
  kept.fc_w = for_products<T>(w.fc_weight, w.fc_low);
  kept.out_w = for_products<T>(w.out_weight, w.out_low);
  const float* x = data<float>(in[kX]);
  norm<T>(x, {}, {}, {}, in[kLn1W], in[kLn1B], s, {}, kept.normed_1, kept.mean_1, kept.rstd_1);
  const at::Tensor qkv = product(kept.normed_1, kept.qkv_w.t());
  kept.mixed = attend<T>(qkv, in[kQkvB], cos, sin, s, drop.attention, kept);
  const at::Tensor attended = product(kept.mixed, kept.proj_w.t());
  kept.y = new_tensor<float>({s.rows(), s.features()});
  norm<T>(x, attended, in[kProjB], kept.y, in[kLn2W], in[kLn2B], s, drop.projection, kept.normed_2, kept.mean_2,
          kept.rstd_2);
  kept.hidden = product(kept.normed_2, kept.fc_w.t());
  kept.active = new_like<T>(kept.hidden);
  const std::int64_t wide = kept.hidden.size(1);
  parallel_for_rows(s.rows(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    kernels::transformer<T>().bias_gelu(data<T>(kept.hidden) + begin * wide, data<float>(in[kFcB]),
                                        data<T>(kept.active) + begin * wide, end - begin, wide);
  });
  const at::Tensor branch = product(kept.active, kept.out_w.t());
  const at::Tensor out = new_tensor<float>({s.batch, s.positions, s.features()});
  parallel_for_rows(s.rows(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * s.features();
    kernels::transformer<T>().add_branch(data<float>(kept.y) + at, data<T>(branch) + at, data<float>(in[kOutB]),
                                         data<float>(out) + at, end - begin, s.features(), drop.mlp.from_row(begin));
  });
  return out;
}

class FusedTransformerBackward final : public torch::autograd::Node {
 public:
  FusedTransformerBackward(const Inputs& inputs, const at::Tensor& cos, const at::Tensor& sin, const Sizes& sizes,
                           const Masks& drop, bool bf16, Kept kept)
      : cos_(cos), sin_(sin), sizes_(sizes), drop_(drop), bf16_(bf16), kept_(std::move(kept)) {
    // Weights of the products were copied when they were rounded; else they are read again.
    for (const Input i : {kX, kLn1W, kLn2W, kFcB}) saved_[i] = SavedVariable(inputs[i], false);
    for (const Input i : {kLn1B, kQkvB, kProjB, kLn2B, kFcB, kOutB}) has_[i] = inputs[i].defined();
    if (!bf16) {
      for (const Input i : {kQkvW, kProjW, kFcW, kOutW}) saved_[i] = SavedVariable(inputs[i], false);
      kept_.qkv_w = kept_.proj_w = kept_.fc_w = kept_.out_w = at::Tensor();
    }
  }

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    if (!gradients[0].defined()) return variable_list(kInputs);
    RUNNER_ASSERT(kept_.y.defined(), "a block's backward pass runs once");
    const at::Tensor dz = std::move(gradients[0]).contiguous().view({sizes_.rows(), sizes_.features()});
    return bf16_ ? backward<Bf16>(dz) : backward<float>(dz);
  }

  std::string name() const override { return "FusedTransformerBackward"; }

  void release_variables() override {
    for (SavedVariable& saved : saved_) saved.reset_data();
    kept_ = Kept();
  }

 private:
  bool wants(Input i) const { return task_should_compute_output(static_cast<std::size_t>(i)); }

  at::Tensor weight_gradient(Input i, const at::Tensor& dout, const at::Tensor& in) const {
    return wants(i) ? matmul_float32(dout.t(), in) : at::Tensor();
  }

  /// The gradient of what was normed, with that of the stream that passes by; in `low` and `sum` that of the branch,
  /// times `drop`.
  template <typename T>
  at::Tensor norm_backward(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                           const at::Tensor& weight, const at::Tensor& dnormed, const at::Tensor& dstream,
                           const kernels::DropMask& drop, at::Tensor* low, at::Tensor* sum, Input weight_place,
                           Input bias_place, variable_list& of_inputs) const {
    const Sizes& s = sizes_;
    const at::Tensor dx = new_tensor<float>({s.rows(), s.features()});
    if (low != nullptr) *low = new_tensor<T>({s.rows(), s.features()});
    const PieceSums dweight(true, s.features()), dbias(has_[bias_place], s.features()),
        dsum(sum != nullptr, s.features());
    parallel_for_rows(s.rows(), [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * s.features();
      kernels::transformer<T>().layer_norm_backward(
          {data<float>(x) + at, data<float>(mean) + begin, data<float>(rstd) + begin, data<float>(weight),
           data<T>(dnormed) + at, data<float>(dstream) + at, data<float>(dx) + at,
           low != nullptr ? data<T>(*low) + at : nullptr, dweight.of(piece), dbias.of(piece), dsum.of(piece),
           end - begin, s.features(), drop.from_row(begin)});
    });
    of_inputs[weight_place] = dweight.total();
    of_inputs[bias_place] = dbias.total();
    if (sum != nullptr) *sum = dsum.total();
    return dx;
  }

  template <typename T>
  at::Tensor attention_backward(const at::Tensor& dmixed, variable_list& of_inputs) const {
    const Sizes& s = sizes_;
    at::Tensor dq, dk, dv;
    causal_attention_backward<T>(kept_.q, kept_.k, kept_.v, kept_.probs, dmixed, s, drop_.attention, dq, dk, dv);
    const at::Tensor dqkv = new_tensor<T>({s.rows(), 3 * s.features()});
    const PieceSums dbias(has_[kQkvB], 3 * s.features());
    const std::int64_t of_sample = s.positions * s.features();
    parallel_for_rows(s.batch, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        kernels::transformer<T>().join_heads(
            {data<T>(dq) + b * of_sample, data<T>(dk) + b * of_sample, data<T>(dv) + b * of_sample, data<float>(cos_),
             data<float>(sin_), data<T>(dqkv) + b * 3 * of_sample, dbias.of(piece), s.positions, s.heads, s.head});
      }
    });
    of_inputs[kQkvB] = dbias.total();
    return dqkv;
  }

  template <typename T>
  at::Tensor weight_of(Input i, const at::Tensor& low) const {
    return low.defined() ? low : saved_[i].unpack();
  }

  template <typename T>
  variable_list backward(const at::Tensor& dz) {
    const Sizes& s = sizes_;
    variable_list of_inputs(kInputs);
    // What goes into the branch's products: dz itself, unless it has to be rounded or something is left out.
    const bool same = std::is_same_v<T, float> && !drop_.mlp.drops();
    const at::Tensor dz_low = same ? dz : new_like<T>(dz);
    const PieceSums dout_bias(true, s.features());
    parallel_for_rows(s.rows(), [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * s.features();
      kernels::transformer<T>().sum_rows(data<float>(dz) + at, dout_bias.of(piece),
                                         same ? nullptr : data<T>(dz_low) + at, end - begin, s.features(),
                                         drop_.mlp.from_row(begin));
    });
    if (has_[kOutB]) of_inputs[kOutB] = dout_bias.total();
    const at::Tensor dhidden = product(dz_low, weight_of<T>(kOutW, kept_.out_w));
    of_inputs[kOutW] = weight_gradient(kOutW, dz_low, kept_.active);
    kept_.active = at::Tensor();
    const std::int64_t wide = dhidden.size(1);
    const PieceSums dfc_bias(has_[kFcB], wide);
    const at::Tensor fc_bias = has_[kFcB] ? saved_[kFcB].unpack() : at::Tensor();
    parallel_for_rows(s.rows(), [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      T* const rows = data<T>(dhidden) + begin * wide;
      kernels::transformer<T>().bias_gelu_backward(data<T>(kept_.hidden) + begin * wide, data<float>(fc_bias), rows,
                                                   rows, dfc_bias.of(piece), end - begin, wide);
    });
    of_inputs[kFcB] = dfc_bias.total();
    kept_.hidden = at::Tensor();
    const at::Tensor dnormed_2 = product(dhidden, weight_of<T>(kFcW, kept_.fc_w));
    of_inputs[kFcW] = weight_gradient(kFcW, dhidden, kept_.normed_2);
    at::Tensor dy_low, dproj_bias;
    const at::Tensor dy =
        norm_backward<T>(kept_.y, kept_.mean_2, kept_.rstd_2, saved_[kLn2W].unpack(), dnormed_2, dz, drop_.projection,
                         &dy_low, has_[kProjB] ? &dproj_bias : nullptr, kLn2W, kLn2B, of_inputs);
    of_inputs[kProjB] = dproj_bias;
    const at::Tensor dmixed = product(dy_low, weight_of<T>(kProjW, kept_.proj_w));
    of_inputs[kProjW] = weight_gradient(kProjW, dy_low, kept_.mixed);
    const at::Tensor dqkv = attention_backward<T>(dmixed, of_inputs);
    const at::Tensor dnormed_1 = product(dqkv, weight_of<T>(kQkvW, kept_.qkv_w));
    of_inputs[kQkvW] = weight_gradient(kQkvW, dqkv, kept_.normed_1);
    const at::Tensor dx = norm_backward<T>(saved_[kX].unpack(), kept_.mean_1, kept_.rstd_1, saved_[kLn1W].unpack(),
                                           dnormed_1, dy, {}, nullptr, nullptr, kLn1W, kLn1B, of_inputs);
    of_inputs[kX] = dx.view({s.batch, s.positions, s.features()});
    for (int i = 0; i < kInputs; ++i) {
      if (!wants(static_cast<Input>(i))) of_inputs[static_cast<std::size_t>(i)] = at::Tensor();
    }
    return of_inputs;
  }

  std::array<SavedVariable, kInputs> saved_;
  std::array<bool, kInputs> has_ = {};
  at::Tensor cos_, sin_;
  Sizes sizes_;
  Masks drop_;
  bool bf16_;
  Kept kept_;
};

}  // namespace

bool fused_transformer_fits(const at::Tensor& x_BTC, const at::Tensor& weight, std::int64_t heads) {
  return x_BTC.dim() == 3 && x_BTC.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
         (x_BTC.is_cpu() || x_BTC.is_meta()) && x_BTC.is_contiguous() && x_BTC.numel() > 0 &&
         x_BTC.size(1) <= kFusedPositionsMax && x_BTC.size(2) % (2 * heads) == 0 && fused_kernels_fit_autocast();
}

at::Tensor fused_transformer(const at::Tensor& x_BTC, const TransformerWeights& w, const TransformerShape& shape,
                             const at::Tensor& cos, const at::Tensor& sin, const std::optional<Dropout>& dropout) {
  const Inputs inputs = {x_BTC,         w.ln_1_weight, w.ln_1_bias,   w.qkv_weight, w.qkv_bias,
                         w.proj_weight, w.proj_bias,   w.ln_2_weight, w.ln_2_bias,  w.fc_weight,
                         w.fc_bias,     w.out_weight,  w.out_bias};
  const Sizes sizes{{x_BTC.size(0), x_BTC.size(1), shape.heads, x_BTC.size(2) / shape.heads}, shape.eps};
  const Masks drop = masks_of(dropout);
  const bool bf16 = lowers_to_bf16();
  Kept kept;
  at::Tensor z_BTC;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    z_BTC = bf16 ? forward<Bf16>(inputs, w, cos, sin, sizes, drop, kept)
                 : forward<float>(inputs, w, cos, sin, sizes, drop, kept);
  }
  const bool wanted = at::GradMode::is_enabled() &&
                      std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& t) { return t.requires_grad(); });
  if (!wanted) return z_BTC;
  const std::shared_ptr<FusedTransformerBackward> node(
      new FusedTransformerBackward(inputs, cos, sin, sizes, drop, bf16, std::move(kept)), torch::autograd::deleteNode);
  torch::autograd::edge_list edges;
  for (const at::Tensor& input : inputs) {
    edges.push_back(input.defined() ? torch::autograd::impl::gradient_edge(input) : torch::autograd::Edge());
  }
  node->set_next_edges(std::move(edges));
  torch::autograd::set_history(z_BTC, node);
  return z_BTC;
}

}  // namespace components::model
