// N: rows   I: inputs of the linear layer   O: its outputs   R: rank   P: outputs that the term adds to, a part of O

#include "components/adapter/low_rank.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>

#include <array>
#include <optional>
#include <utility>

#include "components/ops/dropout.h"
#include "components/ops/matmul.h"
#include "components/ops/torch_bridge.h"
#include "components/part/cached/cached.h"
#include "components/part/fused/rows.h"
#include "runner/core/error.h"

namespace components::adapter {
namespace {

using kernels::Bf16;

/// Of the input; undefined where nothing is dropped.
at::Tensor factors_of(const std::optional<Dropout>& dropout, const at::Tensor& x) {
  return dropout ? dropout->factors_like(x, 0) : at::Tensor();
}

/// y += scale * dropout(x) A^T B^T, so with dy, the gradient of the outputs that it adds to:
/// dB = scale * dy^T (dropout(x) A^T),  dA = scale * (dy B)^T dropout(x),  dx += scale * dropout'((dy B) A)
class LowRankBackward final : public part::LinearTermBackward {
 public:
  struct Kept {
    at::Tensor a_RI, b_PR;  ///< in the type of the products
    at::Tensor narrow_NR;   ///< dropout(x) A^T
    std::optional<Dropout> dropout;
  };

  LowRankBackward(const LowRankOptions& options, Kept kept)
      : first_(options.first), out_(options.out), scale_(options.scale), kept_(std::move(kept)) {}

  std::vector<at::Tensor> backward(const at::Tensor& dy_NO, const at::Tensor& x_NI, const at::Tensor& dx_NI) override {
    RUNNER_ASSERT(kept_.a_RI.defined(), "a term's backward pass runs once");
    const Kept kept = std::exchange(kept_, Kept());
    const at::Tensor dy_NP = dy_NO.narrow(1, first_, out_);
    const at::Tensor factors_NI = factors_of(kept.dropout, x_NI);
    const at::Tensor read_NI = factors_NI.defined() ? x_NI * factors_NI : x_NI;
    const at::Tensor dnarrow_NR = product(dy_NP, kept.b_PR);
    at::Tensor db_PR = matmul_float32(dy_NP.t(), kept.narrow_NR).mul_(scale_);
    at::Tensor da_RI = matmul_float32(dnarrow_NR.t(), read_NI).mul_(scale_);
    if (dx_NI.defined()) {
      at::Tensor dread_NI = product(dnarrow_NR, kept.a_RI);
      if (factors_NI.defined()) dread_NI.mul_(factors_NI);
      dx_NI.add_(dread_NI, scale_);
    }
    return {std::move(da_RI), std::move(db_PR)};
  }

 private:
  std::int64_t first_, out_;
  double scale_;
  Kept kept_;
};

}  // namespace

LowRank::LowRank(const LowRankOptions& options, part::WeightMaker& weights) : options_(options), declared_(weights) {
  const std::array of_a = {options.rank, options.in}, of_b = {options.out, options.rank};
  a_ = part::Weight(declared_.parameter(options.name + ".lora_A.weight", of_a, options.a));
  b_ = part::Weight(declared_.parameter(options.name + ".lora_B.weight", of_b, options.b));
}

LowRank::~LowRank() = default;

void LowRank::add(const at::Tensor& y, const at::Tensor& x) const {
  at::Tensor read = x;
  if (training_ && options_.dropout > 0) read = x * Dropout(options_.dropout, x).factors_like(x, 0);
  // A base in bfloat16 has a stream in bfloat16, and A and B keep float32. Autocast rounds all of it again.
  const at::Tensor narrow = at::linear(read.to(a_.tensor().scalar_type()), a_.tensor());
  const at::Tensor added = at::linear(narrow, b_.tensor());
  y.narrow(-1, options_.first, options_.out).add_(added.to(y.scalar_type()), options_.scale);
}

template <typename T>
std::unique_ptr<part::LinearTermBackward> LowRank::add_product(const at::Tensor& y_NO, const at::Tensor& x_NI) const {
  LowRankBackward::Kept kept{part::for_products<T>(a_), part::for_products<T>(b_), {}, std::nullopt};
  if (training_ && options_.dropout > 0) kept.dropout.emplace(options_.dropout, x_NI);
  const at::Tensor factors_NI = factors_of(kept.dropout, x_NI);
  kept.narrow_NR = product(factors_NI.defined() ? x_NI * factors_NI : x_NI, kept.a_RI.t());
  y_NO.narrow(1, options_.first, options_.out).add_(product(kept.narrow_NR, kept.b_PR.t()), options_.scale);
  // Below autograd no operation counts the change, and who keeps outputs of products has to see it.
  y_NO.unsafeGetTensorImpl()->bump_version();
  return std::make_unique<LowRankBackward>(options_, std::move(kept));
}

std::unique_ptr<part::LinearTermBackward> LowRank::add_to(const at::Tensor& y_NO, const at::Tensor& x_NI) const {
  return x_NI.scalar_type() == at::kBFloat16 ? add_product<Bf16>(y_NO, x_NI) : add_product<float>(y_NO, x_NI);
}

void LowRank::add_rows(const at::Tensor& y_NO, const at::Tensor& x_NI) const {
  const bool bf16 = x_NI.scalar_type() == at::kBFloat16;
  const auto of_products = [bf16](const part::Weight& weight) {
    return bf16 ? part::for_products<Bf16>(weight) : part::for_products<float>(weight);
  };
  const at::Tensor narrow_NR = part::row_products(x_NI, of_products(a_));
  const at::Tensor added_NP = part::row_products(bf16 ? kernels::lowered<Bf16>(narrow_NR) : narrow_NR, of_products(b_));
  y_NO.narrow(1, options_.first, options_.out).add_(added_NP, options_.scale);
}

}  // namespace components::adapter
