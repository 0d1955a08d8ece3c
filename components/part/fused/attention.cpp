// B: samples   T: positions   H: heads   K: heads of keys and values   D: features of a head   N: B * T

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <string>
#include <utility>

#include "components/ops/torch_bridge.h"
#include "components/part/fused/attend_heads.h"
#include "components/part/fused/fused.h"
#include "components/part/fused/rows.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::new_tensor;
using kernels::parallel_for_rows;
using kernels::PieceSums;
using torch::autograd::variable_list;

enum Input : std::size_t { kQkv, kBias, kInputs };

struct Kept {
  at::Tensor q, k, v;  // heads_tensor()
  KeptAttention of_attention;
};

/// Of queries, or of keys or values: [B * heads, T, D]; of texts of unlike length the rows of all.
template <typename T>
at::Tensor heads_tensor(const AttentionShape& s, std::int64_t heads) {
  if (s.begins.empty()) return new_tensor<T>({s.batch * heads, s.positions, s.head});
  return new_tensor<T>({s.rows() * heads, s.head});
}

struct Angles {
  at::Tensor cos, sin;  // [T, D / 2], or undefined
};

template <typename T>
at::Tensor forward(const at::Tensor& qkv, const at::Tensor& bias, const Angles& angles, const AttentionShape& s,
                   const kernels::DropMask& drop, Kept& kept) {
  const std::int64_t of_q = s.heads * s.head, of_k = s.kv_heads * s.head;
  kept.q = heads_tensor<T>(s, s.heads);
  for (at::Tensor* part : {&kept.k, &kept.v}) *part = heads_tensor<T>(s, s.kv_heads);
  parallel_for_rows(s.batch, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t row = s.rows_before(b);
      kernels::transformer<T>().split_heads({data<T>(qkv) + row * (of_q + 2 * of_k), data<float>(bias),
                                             data<float>(angles.cos), data<float>(angles.sin),
                                             data<T>(kept.q) + row * of_q, data<T>(kept.k) + row * of_k,
                                             data<T>(kept.v) + row * of_k, s.rows_of(b), s.heads, s.kv_heads, s.head});
    }
  });
  return attend_heads<T>(kept.q, kept.k, kept.v, s, drop, kept.of_attention);
}

class AttentionBackward final : public torch::autograd::Node {
 public:
  AttentionBackward(bool with_bias, Angles angles, const AttentionShape& shape, const kernels::DropMask& drop,
                    bool bf16, Kept kept)
      : with_bias_(with_bias),
        angles_(std::move(angles)),
        shape_(shape),
        drop_(drop),
        bf16_(bf16),
        kept_(std::move(kept)) {}

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    variable_list of_inputs(kInputs);
    if (!gradients[0].defined()) return of_inputs;
    RUNNER_ASSERT(kept_.q.defined(), "a block's backward pass runs once");
    const at::Tensor dmixed = std::move(gradients[0]).contiguous();
    if (bf16_) {
      backward<Bf16>(dmixed, of_inputs);
    } else {
      backward<float>(dmixed, of_inputs);
    }
    return of_inputs;
  }

  std::string name() const override { return "AttentionBackward"; }
  void release_variables() override { kept_ = Kept(); }

 private:
  template <typename T>
  void backward(const at::Tensor& dmixed, variable_list& of_inputs) {
    const AttentionShape& s = shape_;
    at::Tensor dq, dk, dv;
    attend_heads_backward<T>(kept_.q, kept_.k, kept_.v, kept_.of_attention, dmixed, s, drop_, dq, dk, dv);
    kept_ = Kept();
    const std::int64_t of_q = s.heads * s.head, of_k = s.kv_heads * s.head, of_row = of_q + 2 * of_k;
    at::Tensor dqkv = new_tensor<T>({s.rows(), of_row});
    const PieceSums dbias(with_bias_, of_row);
    parallel_for_rows(s.batch, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t row = s.rows_before(b);
        kernels::transformer<T>().join_heads({data<T>(dq) + row * of_q, data<T>(dk) + row * of_k,
                                              data<T>(dv) + row * of_k, data<float>(angles_.cos),
                                              data<float>(angles_.sin), data<T>(dqkv) + row * of_row, dbias.of(piece),
                                              s.rows_of(b), s.heads, s.kv_heads, s.head});
      }
    });
    if (task_should_compute_output(kQkv)) of_inputs[kQkv] = std::move(dqkv);
    if (with_bias_ && task_should_compute_output(kBias)) of_inputs[kBias] = dbias.total();
  }

  bool with_bias_;
  Angles angles_;
  AttentionShape shape_;
  kernels::DropMask drop_;
  bool bf16_;
  Kept kept_;
};

}  // namespace

AttentionShape attention_shape(std::int64_t batch, std::int64_t positions, const AttentionOptions& options) {
  AttentionShape shape{
      batch, positions, options.heads, options.kv_heads, options.head, static_cast<float>(options.scale)};
  shape.window = options.window;
  shape.causal = options.causal;
  return shape;
}

AttentionShape attention_shape(const Texts& texts, const AttentionOptions& options) {
  AttentionShape shape = attention_shape(texts.count(), texts.longest, options);
  shape.begins = texts.begins;
  shape.padded = texts.padded;
  return shape;
}

namespace {

at::Tensor attend(const at::Tensor& qkv, const at::Tensor& bias, const Rotation* rotation, const AttentionShape& shape,
                  const kernels::DropMask& drop) {
  const bool bf16 = qkv.scalar_type() == at::kBFloat16;
  Angles angles;
  if (rotation != nullptr) angles = {rotation->cos(shape.positions), rotation->sin(shape.positions)};
  Kept kept;
  at::Tensor mixed;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    mixed = bf16 ? forward<Bf16>(qkv, bias, angles, shape, drop, kept)
                 : forward<float>(qkv, bias, angles, shape, drop, kept);
  }
  if (!any_requires_grad({qkv, bias})) return mixed;
  const std::shared_ptr<AttentionBackward> node(
      new AttentionBackward(bias.defined(), std::move(angles), shape, drop, bf16, std::move(kept)),
      torch::autograd::deleteNode);
  node->set_next_edges(edges_of({qkv, bias}));
  torch::autograd::set_history(mixed, node);
  return mixed;
}

}  // namespace

at::Tensor fused_attention(const at::Tensor& qkv, const at::Tensor& bias, const Rotation* rotation,
                           std::int64_t positions, const AttentionOptions& options, const kernels::DropMask& drop) {
  return attend(qkv, bias, rotation, attention_shape(qkv.size(0) / positions, positions, options), drop);
}

at::Tensor fused_attention(const at::Tensor& qkv, const at::Tensor& bias, const Rotation* rotation, const Texts& texts,
                           const AttentionOptions& options, const kernels::DropMask& drop) {
  return attend(qkv, bias, rotation, attention_shape(texts, options), drop);
}

}  // namespace components::part
