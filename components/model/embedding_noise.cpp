#include <ATen/TensorOperators.h>
#include <ATen/ops/rand_like.h>

#include <cmath>
#include <string>

#include "components/model/model.h"
#include "components/tensor/tensors.h"

namespace components::model {

bool add_embedding_noise(Model& model, double alpha) {
  for (const auto& block : model.blocks()) {
    const TensorSpec* ids = find_spec(block->inputs(), kInput);
    const TensorSpec& vectors = block->outputs().front();
    if (ids == nullptr || is_floating(ids->dtype) || vectors.shape.size() != 3) continue;
    const block::Block* const noisy = block.get();
    const auto add = [&model, noisy, alpha, name = vectors.name](const block::Block& ran, TensorMap& activations) {
      if (&ran != noisy || !model.is_training()) return;
      // Of a stream without padding the rows' length is that of the ids.
      const std::int64_t length = activations.at(kInput).size(1);
      const at::Tensor& x_BTC = activations.at(name);
      const double most = alpha / std::sqrt(static_cast<double>(length * x_BTC.size(2)));
      activations.set(name, x_BTC + (at::rand_like(x_BTC) * 2 - 1) * most);
    };
    model.add_hooks({.before_forward = {}, .after_forward = add});
    return true;
  }
  return false;
}

}  // namespace components::model
