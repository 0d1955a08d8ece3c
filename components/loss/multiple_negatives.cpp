// B: pairs   C: features   N: positives and negatives of all pairs

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <memory>
#include <string>
#include <vector>

#include "components/loss/text_vectors.h"
#include "components/tensor/several_texts.h"
#include "generated/loss/multiple_negatives.h"  // Config; declares make()

namespace components::loss::multiple_negatives {
namespace {

class MultipleNegatives final : public TextVectorsLoss {
 public:
  explicit MultipleNegatives(const Config& config) : scale_(config.scale) {}

  std::vector<std::string> reads() const override { return {kOutput, kTextsAt}; }

 private:
  at::Tensor sum_of_vectors(const at::Tensor& vectors_BKC, const TensorMap&) const override {
    const at::Tensor anchors_BC = vectors_BKC.select(1, 0);
    // All positives, and behind them all negatives.
    const at::Tensor others_NC =
        vectors_BKC.narrow(1, 1, vectors_BKC.size(1) - 1).transpose(0, 1).reshape({-1, vectors_BKC.size(2)});
    const at::Tensor scores_BN = anchors_BC.matmul(others_NC.t()) * scale_;
    const at::Tensor own_B = at::arange(scores_BN.size(0), scores_BN.options().dtype(at::kLong));
    return at::cross_entropy_loss(scores_BN, own_B, {}, at::Reduction::Sum);
  }

  double scale_;
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  if (!has_vectors("multiple_negatives", 2, /*or_more=*/true, inputs)) return nullptr;
  return std::make_shared<MultipleNegatives>(config);
}

}  // namespace components::loss::multiple_negatives
