// B: pairs   C: features

#include <ATen/TensorOperators.h>

#include <memory>
#include <string>
#include <vector>

#include "components/loss/text_vectors.h"
#include "components/tensor/several_texts.h"
#include "generated/loss/cosine_similarity.h"  // Config; declares make()

namespace components::loss::cosine_similarity {
namespace {

class CosineSimilarity final : public TextVectorsLoss {
 public:
  std::vector<std::string> reads() const override { return {kOutput, kTextsAt, kTarget}; }

 private:
  at::Tensor sum_of_vectors(const at::Tensor& vectors_BKC, const TensorMap& tensors) const override {
    const at::Tensor cosine_B = (vectors_BKC.select(1, 0) * vectors_BKC.select(1, 1)).sum(1);
    return (cosine_B - tensors.at(kTarget).select(1, 0)).square().sum();
  }
};

}  // namespace

std::shared_ptr<Loss> make(const Config&, const Inputs& inputs) {
  if (!has_vectors("cosine_similarity", 2, /*or_more=*/false, inputs)) return nullptr;
  if (!inputs.have({kTarget})) return nullptr;
  return std::make_shared<CosineSimilarity>();
}

}  // namespace components::loss::cosine_similarity
