// B: samples   T: positions   C: features of the stream   N: B * T   O: outputs

#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/ops/kernel_policy.h"
#include "components/part/fused/fused.h"
#include "components/part/fused/node_linear.h"
#include "components/part/fused/rows.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::new_tensor;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

enum Input : std::size_t { kX, kNormWeight, kNormBias, kWeight, kInputs };

/// What the backward pass needs of the forward pass.
struct Kept {
  at::Tensor normed;  // [N, C]; without a norm what is multiplied, where that is a copy
  NormStatistics statistics;
  NodeLinear linear;
};

/// The stream's rows in the type of the products: itself, or a copy.
template <typename T>
at::Tensor rows_of(const at::Tensor& x_BTC) {
  return kernels::lowered<T>(x_BTC.view({-1, x_BTC.size(2)}));
}

template <typename T>
at::Tensor forward(const at::Tensor& x_BTC, const Norm* norm, const Linear& linear, bool with_backward, Kept& kept) {
  if (norm != nullptr) {
    const NormShape shape = shape_of(*norm, x_BTC.size(0) * x_BTC.size(1));
    kept.normed = new_tensor<T>({shape.rows, shape.width});
    norm_rows<T>(data<float>(x_BTC), nullptr, norm->weight(), norm->bias(), shape, {kept.normed, {}}, kept.statistics);
  } else {
    kept.normed = rows_of<T>(x_BTC);
  }
  return kept.linear.forward(linear, kept.normed, with_backward);
}

class NormLinearBackward final : public torch::autograd::Node {
 public:
  /// `norm` may be null, and `norm_weight` undefined.
  NormLinearBackward(const at::Tensor& x_BTC, const Norm* norm, const at::Tensor& norm_weight, bool bf16, Kept kept)
      : x_(norm == nullptr && bf16 ? at::Tensor() : x_BTC, false),
        norm_weight_(norm_weight, false),
        with_norm_(norm != nullptr),
        with_bias_(norm != nullptr && norm->bias().defined()),
        sizes_(x_BTC.sizes().vec()),
        bf16_(bf16),
        kept_(std::move(kept)) {
    if (norm != nullptr) shape_ = shape_of(*norm, x_BTC.size(0) * x_BTC.size(1));
    // What is multiplied without a norm in float32 is x itself.
    if (norm == nullptr && !bf16) kept_.normed = at::Tensor();
  }

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    variable_list of_inputs(num_outputs());
    if (!gradients[0].defined()) {
      of_inputs[kX] = gradients[1];
      return of_inputs;
    }
    RUNNER_ASSERT(!is_done_, "a block's backward pass runs once");
    is_done_ = true;
    const at::Tensor dout = std::move(gradients[0]).contiguous();
    const at::Tensor dstream = gradients[1].defined() ? gradients[1].contiguous() : at::Tensor();
    gradients[1] = at::Tensor();
    if (bf16_) {
      backward<Bf16>(dout, dstream, of_inputs);
    } else {
      backward<float>(dout, dstream, of_inputs);
    }
    return of_inputs;
  }

  std::string name() const override { return "NormLinearBackward"; }

  void release_variables() override {
    for (SavedVariable* saved : {&x_, &norm_weight_}) saved->reset_data();
    kept_ = Kept();
    is_done_ = true;
  }

 private:
  bool wants(Input i) const { return task_should_compute_output(i); }

  template <typename T>
  void backward(const at::Tensor& dout, const at::Tensor& dstream, variable_list& of_inputs) {
    const bool of_norm = wants(kX) || wants(kNormWeight) || wants(kNormBias);
    const at::Tensor normed = kept_.normed.defined() ? kept_.normed : rows_of<T>(x_.unpack());
    const at::Tensor dnormed = kept_.linear.backward(dout, normed, of_norm, wants(kWeight), of_inputs);
    if (!of_norm) return;
    if (!with_norm_) {
      of_inputs[kX] = dnormed.to(at::kFloat).view(sizes_);
      if (dstream.defined()) of_inputs[kX].add_(dstream);
      return;
    }
    NormGradients found =
        norm_rows_backward<T>({x_.unpack(), dnormed, dstream, norm_weight_.unpack(), with_bias_, {}, {}}, shape_,
                              kept_.statistics, false, false);
    if (wants(kX)) of_inputs[kX] = found.dx.view(sizes_);
    if (wants(kNormWeight)) of_inputs[kNormWeight] = std::move(found.dweight);
    if (wants(kNormBias)) of_inputs[kNormBias] = std::move(found.dbias);
  }

  SavedVariable x_, norm_weight_;
  bool with_norm_, with_bias_, is_done_ = false;
  std::vector<std::int64_t> sizes_;
  NormShape shape_;
  bool bf16_;
  Kept kept_;
};

}  // namespace

NormedLinear fused_norm_linear(const at::Tensor& x_BTC, const Norm* norm, const Linear& linear) {
  const bool bf16 = lowers_to_bf16();
  const at::Tensor norm_weight = norm != nullptr ? norm->weight() : at::Tensor();
  std::vector<at::Tensor> inputs = {x_BTC, norm_weight, norm != nullptr ? norm->bias() : at::Tensor(),
                                    linear.product().parameter()};
  for (at::Tensor& tensor : term_tensors({&linear})) inputs.push_back(std::move(tensor));
  const bool wanted = any_requires_grad(inputs);
  Kept kept;
  kept.linear.weight = kWeight;
  kept.linear.terms = kInputs;
  NormedLinear found{{}, x_BTC};
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    found.out =
        bf16 ? forward<Bf16>(x_BTC, norm, linear, wanted, kept) : forward<float>(x_BTC, norm, linear, wanted, kept);
    if (wanted) found.stream = at::alias(x_BTC);
  }
  if (!wanted) return found;
  const std::shared_ptr<NormLinearBackward> node(
      new NormLinearBackward(x_BTC, norm, norm_weight, bf16, std::move(kept)), torch::autograd::deleteNode);
  node->set_next_edges(edges_of(inputs));
  torch::autograd::set_history(found.out, node);
  torch::autograd::set_history(found.stream, node);
  return found;
}

}  // namespace components::part
