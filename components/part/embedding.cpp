#include "components/part/embedding.h"

#include <ATen/ops/_unique.h>
#include <ATen/ops/embedding.h>

#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"

namespace components::part {

Embedding::Embedding(Declared& declared, const std::string& name, std::int64_t rows, std::int64_t width,
                     const Init& init, std::int64_t padding)
    : padding_(padding) {
  const std::int64_t shape[] = {rows, width};
  Init with_padding = init;
  with_padding.zero_row = padding;
  weight_ = Weight(declared.parameter(name + ".weight", shape, with_padding));
}

Embedding::Embedding(const at::Tensor& shared) : weight_(shared), padding_(-1) {}

at::Tensor Embedding::forward(const at::Tensor& ids, bool sparse) const {
  const auto vectors = [&](const at::Tensor& wanted) {
    return at::embedding(weight(), wanted, padding_, /*scale_grad_by_freq=*/false, sparse);
  };
  if (weight().scalar_type() == at::kFloat || !Autocast::is_on(ids.device().type())) return vectors(ids);
  if (!ids.is_cpu()) return vectors(ids).to(at::kFloat);
  // A row's gradients are added up in float32 and rounded once. A GPU does so by itself.
  const auto [distinct, places] = at::_unique(ids, /*sorted=*/true, /*return_inverse=*/true);
  return at::embedding(vectors(distinct).to(at::kFloat), places);
}

at::Tensor Embedding::first(std::int64_t count) const {
  return count == weight().size(0) ? weight() : weight().narrow(0, 0, count);
}

}  // namespace components::part
