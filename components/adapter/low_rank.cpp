// N: rows   I: inputs of the linear layer   O: its outputs   R: rank   P: outputs that the term adds to, a part of O

#include "components/adapter/low_rank.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linear.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "components/ops/dropout.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/matmul.h"
#include "components/ops/torch_bridge.h"
#include "components/part/row_products.h"
#include "runner/core/error.h"
#include "runner/pretrained/adapter_layers.h"

namespace components::adapter {
namespace {

using kernels::Bf16;
using Part = runner::pretrained::AdapterTensor::Part;

constexpr double kNotSet = 0.0;  ///< in all of a magnitude: no row of a weight that is not zero has this norm

/// Of the input; undefined where nothing is dropped.
at::Tensor factors_of(const std::optional<Dropout>& dropout, const at::Tensor& x) {
  return dropout ? dropout->factors_like(x, 0) : at::Tensor();
}

/// In the type of the products.
at::Tensor times(const at::Tensor& rows_NP, const at::Tensor& factors_P) {
  return rows_NP * factors_P.to(rows_NP.scalar_type());
}

/// y += scale * dropout(x) A^T B^T, so with dy, the gradient of the outputs that it adds to:
/// dB = scale * dy^T (dropout(x) A^T),  dA = scale * (dy B)^T dropout(x),  dx += scale * dropout'((dy B) A)
/// With DoRA the outputs are f * (x V^T), f = m / |V|: the same with f * dy, dm = sum over rows of dy * x V^T / |V|,
/// and with dropout, where V reads dropout(x) and x W^T is left as it is, dx += dropout'(((f - 1) * dy) W).
class LowRankBackward final : public part::LinearTermBackward {
 public:
  struct Kept {
    at::Tensor a_RI, b_PR;  ///< in the type of the products
    at::Tensor narrow_NR;   ///< dropout(x) A^T
    std::optional<Dropout> dropout;
    bool trained = true;  ///< whether A and B have gradients
    // Of DoRA.
    at::Tensor factors_P, norm_P;  ///< f and |V|, float32
    at::Tensor decomposed_NP;      ///< what f multiplied
    at::Tensor weight_PI;          ///< W in the type of the products, with dropout
  };

  LowRankBackward(const LowRankOptions& options, Kept kept)
      : first_(options.first), out_(options.out), scale_(options.scale), kept_(std::move(kept)) {}

  bool scales() const override { return kept_.factors_P.defined() && !kept_.dropout; }

  void to_product(const at::Tensor& dy_NO) override {
    const at::Tensor dy_NP = dy_NO.narrow(1, first_, out_);
    dmagnitude_P_ = magnitude_gradient(dy_NP);
    dy_NP.mul_(kept_.factors_P);
  }

  std::vector<at::Tensor> backward(const at::Tensor& dy_NO, const at::Tensor& x_NI, const at::Tensor& dx_NI) override {
    RUNNER_ASSERT(kept_.a_RI.defined(), "a term's backward pass runs once");
    const bool decomposed = kept_.factors_P.defined(), beside = decomposed && kept_.dropout;
    const at::Tensor dall_NP = dy_NO.narrow(1, first_, out_);
    if (beside) dmagnitude_P_ = magnitude_gradient(dall_NP);
    const Kept kept = std::exchange(kept_, Kept());
    const at::Tensor dy_NP = beside ? times(dall_NP, kept.factors_P) : dall_NP;
    const at::Tensor factors_NI = factors_of(kept.dropout, x_NI);
    const at::Tensor read_NI = factors_NI.defined() ? x_NI * factors_NI : x_NI;
    const at::Tensor dnarrow_NR = product(dy_NP, kept.b_PR);
    at::Tensor da_RI, db_PR;
    if (kept.trained) {
      db_PR = matmul_float32(dy_NP.t(), kept.narrow_NR).mul_(scale_);
      da_RI = matmul_float32(dnarrow_NR.t(), read_NI).mul_(scale_);
    }
    if (dx_NI.defined()) {
      at::Tensor dread_NI = product(dnarrow_NR, kept.a_RI);
      if (beside) dread_NI.mul_(scale_).add_(product(times(dall_NP, kept.factors_P - 1.0), kept.weight_PI));
      if (factors_NI.defined()) dread_NI.mul_(factors_NI);
      dx_NI.add_(dread_NI, beside ? 1.0 : scale_);
    }
    std::vector<at::Tensor> gradients = {std::move(da_RI), std::move(db_PR)};
    if (decomposed) gradients.push_back(std::move(dmagnitude_P_));
    return gradients;
  }

 private:
  at::Tensor magnitude_gradient(const at::Tensor& dy_NP) const {
    return (dy_NP.to(at::kFloat) * kept_.decomposed_NP).sum(0).div_(kept_.norm_P);
  }

  std::int64_t first_, out_;
  double scale_;
  Kept kept_;
  at::Tensor dmagnitude_P_;
};

}  // namespace

struct LowRank::Factors {
  std::array<std::pair<const void*, std::uint32_t>, 4> of = {};  ///< addresses and versions of m, A, B and W
  at::Tensor factors_P;
};

LowRank::LowRank(const LowRankOptions& options, part::WeightMaker& weights) : options_(options), declared_(weights) {
  const std::array of_a = {options.rank, options.in}, of_b = {options.out, options.rank};
  const auto name = [&options](Part part) {
    return runner::pretrained::name_of_tensor({options.name, part, options.adapter});
  };
  a_ = part::Weight(declared_.parameter(name(Part::kA), of_a, options.a));
  b_ = part::Weight(declared_.parameter(name(Part::kB), of_b, options.b));
  if (options.decomposed == nullptr) return;
  const std::array of_m = {options.out};
  magnitude_ = part::Weight(declared_.parameter(name(Part::kMagnitude), of_m, part::constant(kNotSet)));
}

LowRank::~LowRank() = default;

at::Tensor LowRank::norm() const {
  const at::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::Tensor base = options_.decomposed->product().weight(options_.first, options_.out, /*bf16=*/false);
  const at::Tensor whole = at::addmm(base, b_.tensor(), a_.tensor(), 1.0, options_.scale);
  return at::linalg_vector_norm(whole, 2.0, at::IntArrayRef{1});
}

void LowRank::begin() const {
  const at::NoGradGuard no_grad;
  if (!magnitude_.defined()) return;
  const auto is_there = [](const part::Weight& weight) {
    return !weight.tensor().is_meta() && weight.tensor().storage().nbytes() > 0;
  };
  if (!is_there(magnitude_) || !is_there(a_) || !is_there(b_)) return;
  if (options_.decomposed->product().version().first == nullptr) return;
  if (magnitude_.tensor().ne(kNotSet).any().item<bool>()) return;
  magnitude_.tensor().copy_(norm());
}

const at::Tensor& LowRank::kept_factors() const {
  std::array<std::pair<const void*, std::uint32_t>, 4> of;
  std::size_t place = 0;
  for (const part::Weight* weight : {&magnitude_, &a_, &b_}) {
    of[place++] = {weight->tensor().data_ptr(), static_cast<std::uint32_t>(weight->tensor()._version())};
  }
  of[place] = options_.decomposed->product().version();
  if (factors_ == nullptr || factors_->of != of) {
    const at::NoGradGuard no_grad;
    factors_ = std::make_unique<Factors>(Factors{of, magnitude_.tensor() / norm()});
  }
  return factors_->factors_P;
}

/// y: x W^T + b, with all outputs of the layer.
void LowRank::add_decomposed(const at::Tensor& y, const at::Tensor& x) const {
  const at::Tensor read = drops() ? x * Dropout(options_.dropout, x).factors_like(x, 0) : x;
  const at::Tensor narrow = at::linear(read.to(a_.tensor().scalar_type()), a_.tensor());
  const at::Tensor added = at::linear(narrow, b_.tensor()) * options_.scale;
  const at::Tensor own = y.narrow(-1, options_.first, options_.out);
  const at::Tensor& bias = options_.decomposed->bias();
  at::Tensor base;
  if (drops()) {
    const at::Tensor weight = options_.decomposed->product().weight(options_.first, options_.out, /*bf16=*/false);
    base = at::linear(read, weight.to(read.scalar_type()));
  } else {
    base = bias.defined() ? own - bias.narrow(0, options_.first, options_.out) : own.clone();
  }
  const at::Tensor factors = magnitude_.tensor() / norm();
  own.add_(((factors - 1.0) * base + factors * added).to(y.scalar_type()));
}

void LowRank::add(const at::Tensor& y, const at::Tensor& x) const {
  if (magnitude_.defined()) return add_decomposed(y, x);
  at::Tensor read = x;
  if (drops()) read = x * Dropout(options_.dropout, x).factors_like(x, 0);
  // A base in bfloat16 has a stream in bfloat16, and A and B keep float32. Autocast rounds all of it again.
  const at::Tensor narrow = at::linear(read.to(a_.tensor().scalar_type()), a_.tensor());
  const at::Tensor added = at::linear(narrow, b_.tensor());
  y.narrow(-1, options_.first, options_.out).add_(added.to(y.scalar_type()), options_.scale);
}

template <typename T>
std::unique_ptr<part::LinearTermBackward> LowRank::add_product(const at::Tensor& y_NO, const at::Tensor& x_NI) const {
  LowRankBackward::Kept kept;
  constexpr bool kBf16 = std::is_same_v<T, Bf16>;
  kept.a_RI = a_.for_products(kBf16, keeps_low_weights());
  kept.b_PR = b_.for_products(kBf16, keeps_low_weights());
  kept.trained = a_.tensor().requires_grad() || b_.tensor().requires_grad();
  if (drops()) kept.dropout.emplace(options_.dropout, x_NI);
  const at::Tensor factors_NI = factors_of(kept.dropout, x_NI);
  const at::Tensor read_NI = factors_NI.defined() ? x_NI * factors_NI : x_NI;
  kept.narrow_NR = product(read_NI, kept.a_RI.t());
  const at::Tensor added_NP = product(kept.narrow_NR, kept.b_PR.t()),
                   y_NP = y_NO.narrow(1, options_.first, options_.out);
  if (magnitude_.defined()) {
    kept.norm_P = norm();
    kept.factors_P = magnitude_.tensor() / kept.norm_P;
    if (kept.dropout) {
      kept.weight_PI = options_.decomposed->product().weight(options_.first, options_.out, kBf16);
      const at::Tensor base_NP = product(read_NI, kept.weight_PI.t());
      y_NP.sub_(base_NP);
      kept.decomposed_NP = base_NP.add_(added_NP, options_.scale);
      y_NP.add_(times(kept.decomposed_NP, kept.factors_P));
    } else {
      kept.decomposed_NP = y_NP.add(added_NP, options_.scale);
      y_NP.copy_(times(kept.decomposed_NP, kept.factors_P));
    }
  } else {
    y_NP.add_(added_NP, options_.scale);
  }
  // Below autograd no operation counts the change, and who keeps outputs of products has to see it.
  y_NO.unsafeGetTensorImpl()->bump_version();
  return std::make_unique<LowRankBackward>(options_, std::move(kept));
}

std::unique_ptr<part::LinearTermBackward> LowRank::add_to(const at::Tensor& y_NO, const at::Tensor& x_NI) const {
  return x_NI.scalar_type() == at::kBFloat16 ? add_product<Bf16>(y_NO, x_NI) : add_product<float>(y_NO, x_NI);
}

void LowRank::add_rows(const at::Tensor& y_NO, const at::Tensor& x_NI) const {
  const bool bf16 = x_NI.scalar_type() == at::kBFloat16;
  const bool keeps = keeps_low_weights();
  const at::Tensor narrow_NR = part::row_products(x_NI, a_.for_products(bf16, keeps));
  const at::Tensor added_NP =
      part::row_products(bf16 ? kernels::lowered<Bf16>(narrow_NR) : narrow_NR, b_.for_products(bf16, keeps));
  const at::Tensor y_NP = y_NO.narrow(1, options_.first, options_.out).add_(added_NP, options_.scale);
  if (magnitude_.defined()) y_NP.mul_(kept_factors());
}

}  // namespace components::adapter
