// B: samples   T: positions   C: features of the stream   N: B * T   F: features inside the MLP

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "components/ops/kernel_policy.h"
#include "components/part/fused/attend_heads.h"
#include "components/part/fused/fused.h"
#include "components/part/fused/node_linear.h"
#include "components/part/fused/rows.h"
#include "components/tensor/device.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::new_like;
using kernels::new_tensor;
using kernels::parallel_for_rows;
using kernels::PieceSums;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

/// Places of the inputs in the graph; behind them are the tensors of the terms of the three linear layers.
enum Input : std::size_t {
  kX,
  kMixed,
  kProjW,
  kProjB,
  kNormW,
  kNormB,
  kFcW,
  kFcB,
  kOutW,
  kOutB,
  kLastW,
  kLastB,
  kInputs
};

struct Sizes {
  std::int64_t batch, positions;
  NormShape norm;  // rows: N, width: C
  NormShape last;  // of the norm behind the MLP's sum, where there is one
  std::int64_t hidden;
  kernels::Activation activation;
  bool gated;
};

/// What the backward pass needs of the forward pass.
struct Kept {
  at::Tensor mixed;  // [N, H D]
  at::Tensor y;      // [N, C] float32, the sum of stream and attention, which is normed
  at::Tensor normed;
  NormStatistics statistics;
  at::Tensor z;  // the sum with the MLP's branch, where that is normed, too
  NormStatistics last_statistics;
  at::Tensor hidden, active;  // [N, F or 2 F], before bias and activation; [N, F] after
  NodeLinear proj, fc, out;
};

struct Parts {
  const Linear& proj;
  const Norm& norm;
  const Mlp& mlp;
  const Norm* last;
};

template <typename T>
at::Tensor forward(const at::Tensor& x, const Parts& parts, const Sizes& s, const BranchDrops& drops,
                   bool with_backward, Kept& kept) {
  const at::Tensor attended = kept.proj.forward(parts.proj, kept.mixed, with_backward);
  kept.y = new_tensor<float>({s.norm.rows, s.norm.width});
  const Branch branch{attended, parts.proj.bias(), kept.y, drops.attention};
  kept.normed = new_tensor<T>({s.norm.rows, s.norm.width});
  // The stream between attention and MLP is the sum, or that normed.
  at::Tensor between = kept.y;
  if (parts.last != nullptr) {
    between = std::is_same_v<T, float> ? kept.normed : new_tensor<float>({s.norm.rows, s.norm.width});
  }
  const bool is_apart = parts.last != nullptr && !std::is_same_v<T, float>;
  norm_rows<T>(data<float>(x), &branch, parts.norm.weight(), parts.norm.bias(), s.norm,
               {kept.normed, is_apart ? between : at::Tensor()}, kept.statistics);
  kept.hidden = kept.fc.forward(parts.mlp.fc(), kept.normed, with_backward);
  kept.active = new_tensor<T>({s.norm.rows, s.hidden});
  const std::int64_t wide = kept.hidden.size(1);
  parallel_for_rows(s.norm.rows, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    kernels::transformer<T>().activate({data<T>(kept.hidden) + begin * wide, data<float>(parts.mlp.fc().bias()),
                                        data<T>(kept.active) + begin * s.hidden, end - begin, s.hidden, s.activation,
                                        s.gated});
  });
  const at::Tensor added = kept.out.forward(parts.mlp.proj(), kept.active, with_backward);
  at::Tensor out = new_tensor<float>({s.batch, s.positions, s.norm.width});
  if (parts.last != nullptr) {
    kept.z = new_tensor<float>({s.norm.rows, s.norm.width});
    const Branch last{added, parts.mlp.proj().bias(), kept.z, drops.mlp};
    norm_rows<T>(data<float>(between), &last, parts.last->weight(), parts.last->bias(), s.last, {{}, out},
                 kept.last_statistics);
    return out;
  }
  parallel_for_rows(s.norm.rows, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * s.norm.width;
    kernels::transformer<T>().add_branch(data<float>(kept.y) + at, data<T>(added) + at,
                                         data<float>(parts.mlp.proj().bias()), data<float>(out) + at, end - begin,
                                         s.norm.width, drops.mlp.from_row(begin));
  });
  return out;
}

class OutputMlpBackward final : public torch::autograd::Node {
 public:
  OutputMlpBackward(const std::vector<at::Tensor>& inputs, const Sizes& sizes, const BranchDrops& drops, bool bf16,
                    Kept kept)
      : sizes_(sizes), drops_(drops), bf16_(bf16), kept_(std::move(kept)) {
    for (const Input i : {kNormW, kFcB, kLastW}) saved_[i] = SavedVariable(inputs[i], false);
    for (const Input i : {kProjB, kNormB, kFcB, kOutB, kLastW, kLastB}) has_[i] = inputs[i].defined();
  }

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    if (!gradients[0].defined()) return variable_list(num_outputs());
    RUNNER_ASSERT(kept_.y.defined(), "a block's backward pass runs once");
    const at::Tensor dz = std::move(gradients[0]).contiguous().view({sizes_.norm.rows, sizes_.norm.width});
    return bf16_ ? backward<Bf16>(dz) : backward<float>(dz);
  }

  std::string name() const override { return "OutputMlpBackward"; }

  void release_variables() override {
    for (SavedVariable& saved : saved_) saved.reset_data();
    kept_ = Kept();
  }

 private:
  bool wants(Input i) const { return task_should_compute_output(i); }

  /// The gradient of the MLP's branch, as its products take it, of that of the stream behind the sum.
  template <typename T>
  at::Tensor branch_backward(const at::Tensor& dz, variable_list& of_inputs) {
    const NormShape& s = sizes_.norm;
    // dz itself, unless it has to be rounded or something is left out.
    const bool same = std::is_same_v<T, float> && !drops_.mlp.drops();
    const at::Tensor dz_low = same ? dz : new_like<T>(dz);
    const PieceSums dout_bias(true, s.width);
    if (has_[kOutB] || !same) {
      parallel_for_rows(s.rows, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
        const std::int64_t at = begin * s.width;
        kernels::transformer<T>().sum_rows(data<float>(dz) + at, dout_bias.of(piece),
                                           same ? nullptr : data<T>(dz_low) + at, end - begin, s.width,
                                           drops_.mlp.from_row(begin));
      });
    }
    if (has_[kOutB]) of_inputs[kOutB] = dout_bias.total();
    return dz_low;
  }

  /// The gradient of the MLP's branch, to that of what was normed.
  template <typename T>
  at::Tensor mlp_backward(const at::Tensor& dbranch, variable_list& of_inputs) {
    const NormShape& s = sizes_.norm;
    const at::Tensor dactive = kept_.out.backward(dbranch, kept_.active, true, wants(kOutW), of_inputs);
    kept_.active = at::Tensor();
    const std::int64_t wide = kept_.hidden.size(1);
    const at::Tensor dhidden = sizes_.gated ? new_tensor<T>({s.rows, wide}) : dactive;
    const PieceSums dfc_bias(has_[kFcB], wide);
    const at::Tensor fc_bias = has_[kFcB] ? saved_[kFcB].unpack() : at::Tensor();
    parallel_for_rows(s.rows, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      kernels::transformer<T>().activate_backward({data<T>(kept_.hidden) + begin * wide, data<float>(fc_bias),
                                                   data<T>(dactive) + begin * sizes_.hidden,
                                                   data<T>(dhidden) + begin * wide, dfc_bias.of(piece), end - begin,
                                                   sizes_.hidden, sizes_.activation, sizes_.gated});
    });
    of_inputs[kFcB] = dfc_bias.total();
    kept_.hidden = at::Tensor();
    const at::Tensor dnormed = kept_.fc.backward(dhidden, kept_.normed, true, wants(kFcW), of_inputs);
    kept_.normed = at::Tensor();
    return dnormed;
  }

  template <typename T>
  variable_list backward(const at::Tensor& dz) {
    variable_list of_inputs(num_outputs());
    const at::Tensor norm_weight = saved_[kNormW].unpack(), none;
    NormGradients of_norm;
    if (has_[kLastW]) {
      NormGradients of_last =
          norm_rows_backward<T>({kept_.z, none, none, saved_[kLastW].unpack(), has_[kLastB], drops_.mlp, dz},
                                sizes_.last, kept_.last_statistics, /*with_low=*/true, has_[kOutB]);
      kept_.z = at::Tensor();
      of_inputs[kLastW] = std::move(of_last.dweight);
      of_inputs[kLastB] = std::move(of_last.dbias);
      of_inputs[kOutB] = std::move(of_last.sum);
      const at::Tensor dnormed = mlp_backward<T>(std::move(of_last.low), of_inputs);
      of_norm = norm_rows_backward<T>({kept_.y, dnormed, none, norm_weight, has_[kNormB], drops_.attention, of_last.dx},
                                      sizes_.norm, kept_.statistics, /*with_low=*/true, has_[kProjB]);
    } else {
      const at::Tensor dnormed = mlp_backward<T>(branch_backward<T>(dz, of_inputs), of_inputs);
      of_norm = norm_rows_backward<T>({kept_.y, dnormed, dz, norm_weight, has_[kNormB], drops_.attention, none},
                                      sizes_.norm, kept_.statistics, /*with_low=*/true, has_[kProjB]);
    }
    of_inputs[kNormW] = std::move(of_norm.dweight);
    of_inputs[kNormB] = std::move(of_norm.dbias);
    of_inputs[kProjB] = std::move(of_norm.sum);
    of_inputs[kMixed] = kept_.proj.backward(of_norm.low, kept_.mixed, wants(kMixed), wants(kProjW), of_inputs);
    of_inputs[kX] = of_norm.dx.view({sizes_.batch, sizes_.positions, sizes_.norm.width});
    kept_ = Kept();
    for (std::size_t i = 0; i < of_inputs.size(); ++i) {
      if (!task_should_compute_output(i)) of_inputs[i] = at::Tensor();
    }
    return of_inputs;
  }

  std::array<SavedVariable, kInputs> saved_;
  std::array<bool, kInputs> has_ = {};
  Sizes sizes_;
  BranchDrops drops_;
  bool bf16_;
  Kept kept_;
};

}  // namespace

bool fused_block_fits(const at::Tensor& x_BTC, const SelfAttention& attention, const Mlp& mlp, bool drops,
                      const Texts* texts) {
  const AttentionOptions& o = attention.options();
  for (const Linear* linear : {&attention.qkv(), &attention.proj(), &mlp.fc(), &mlp.proj()}) {
    if (!linear->product().fits_nodes(lowers_to_bf16())) return false;
  }
  const AttentionShape shape =
      texts != nullptr ? attention_shape(*texts, o) : attention_shape(x_BTC.size(0), x_BTC.size(1), o);
  return x_BTC.dim() == 3 && x_BTC.scalar_type() == at::kFloat && supports_own_kernels(x_BTC) &&
         x_BTC.is_contiguous() && x_BTC.numel() > 0 && o.head % 2 == 0 && !o.alibi &&
         of_kernels(mlp.options().activation) && fused_kernels_fit_autocast() &&
         attend_heads_covers(shape, lowers_to_bf16(), drops);
}

at::Tensor fused_output_mlp(const at::Tensor& x_BTC, const at::Tensor& mixed, const Linear& proj, const Norm& norm,
                            const Mlp& mlp, const Norm* last, const BranchDrops& drops) {
  const Linear &fc = mlp.fc(), &out = mlp.proj();
  std::vector<at::Tensor> inputs = {x_BTC,
                                    mixed,
                                    proj.product().parameter(),
                                    proj.bias(),
                                    norm.weight(),
                                    norm.bias(),
                                    fc.product().parameter(),
                                    fc.bias(),
                                    out.product().parameter(),
                                    out.bias(),
                                    last != nullptr ? last->weight() : at::Tensor(),
                                    last != nullptr ? last->bias() : at::Tensor()};
  for (at::Tensor& tensor : term_tensors({&proj, &fc, &out})) inputs.push_back(std::move(tensor));
  const Sizes sizes{x_BTC.size(0),
                    x_BTC.size(1),
                    shape_of(norm, x_BTC.size(0) * x_BTC.size(1)),
                    last != nullptr ? shape_of(*last, x_BTC.size(0) * x_BTC.size(1)) : NormShape{},
                    mlp.options().hidden,
                    of_kernels(mlp.options().activation).value(),
                    mlp.options().gated};
  const bool bf16 = mixed.scalar_type() == at::kBFloat16;
  Kept kept;
  kept.proj.weight = kProjW;
  kept.fc.weight = kFcW;
  kept.out.weight = kOutW;
  kept.proj.terms = kInputs;
  kept.fc.terms = kept.proj.terms + term_tensor_count(proj);
  kept.out.terms = kept.fc.terms + term_tensor_count(fc);
  const bool wanted = any_requires_grad(inputs);
  at::Tensor z_BTC;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    kept.mixed = mixed.detach();
    const Parts parts{proj, norm, mlp, last};
    z_BTC = bf16 ? forward<Bf16>(x_BTC, parts, sizes, drops, wanted, kept)
                 : forward<float>(x_BTC, parts, sizes, drops, wanted, kept);
  }
  if (!wanted) return z_BTC;
  const std::shared_ptr<OutputMlpBackward> node(new OutputMlpBackward(inputs, sizes, drops, bf16, std::move(kept)),
                                                torch::autograd::deleteNode);
  node->set_next_edges(edges_of(inputs));
  torch::autograd::set_history(z_BTC, node);
  return z_BTC;
}

}  // namespace components::part
