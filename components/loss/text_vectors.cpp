// B: records   K: texts of one   C: features

#include "components/loss/text_vectors.h"

#include <ATen/TensorOperators.h>

#include "components/tensor/several_texts.h"

namespace components::loss {
namespace {

constexpr double kLeastLength = 1e-12;  ///< torch.nn.functional.normalize

}  // namespace

std::int64_t TextVectorsLoss::count(const TensorMap& batch) const { return batch.at(kTextsAt).size(0); }

at::Tensor TextVectorsLoss::sum_of(const TensorMap& tensors) const {
  const at::Tensor vectors = tensors.at(kOutput).to(at::kFloat);
  return sum_of_vectors(vectors / vectors.square().sum({-1}, /*keepdim=*/true).sqrt().clamp_min(kLeastLength), tensors);
}

bool has_vectors(const std::string& name, std::int64_t texts, bool or_more, const Inputs& inputs) {
  const runner::core::Location& location = inputs.block.location();
  const TensorSpec* several = inputs.data.find(kTextsAt);
  const std::string pairs = or_more ? "pairs of texts" : "pairs of texts with a score";
  if (several == nullptr || several->shape[1] < texts || (several->shape[1] > texts && !or_more)) {
    inputs.diagnostics.error(location, name + " needs " + pairs + ", but data.train has none",
                             "use data of type jsonl whose records have " +
                                 std::string(or_more ? "anchor and positive" : "sentence1, sentence2 and score"));
    return false;
  }
  if (!inputs.have({kOutput})) return false;
  const TensorSpec& output = *inputs.find(kOutput);
  if (output.dtype == Dtype::kFloat32 && output.shape.size() == 3 && output.shape[1] == several->shape[1]) return true;
  inputs.diagnostics.error(location, name + " needs a vector of each text, but the model returns " + to_text(output),
                           "give it such a head: init_from: {path: FOLDER, head: embedding}");
  return false;
}

}  // namespace components::loss
