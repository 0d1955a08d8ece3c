#include "components/part/embedding.h"

#include <ATen/ops/embedding.h>

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

at::Tensor Embedding::forward(const at::Tensor& ids, bool sparse) const {
  return at::embedding(weight(), ids, padding_, /*scale_grad_by_freq=*/false, sparse);
}

at::Tensor Embedding::first(std::int64_t count) const {
  return count == weight().size(0) ? weight() : weight().narrow(0, 0, count);
}

}  // namespace components::part
