#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "components/tensor/autocast.h"

// What losses by LibTorch's operations, on any device, have in common when they make logits part by part.

namespace components::loss {

/// Calls for consecutive chunks of at most `most` rows.
inline void for_chunks(std::int64_t rows, std::int64_t most,
                       const std::function<void(std::int64_t first, std::int64_t count)>& call) {
  for (std::int64_t first = 0; first < rows; first += most) call(first, std::min(most, rows - first));
}

/// Turns rows of logits [n, V] into exp(x - maximum), whose sums are returned with the logarithms of the sums of the
/// exponentials, both [n, 1]. LibTorch's logsumexp would make a second matrix.
struct Exponentials {
  at::Tensor sums, logsumexp;
};
inline Exponentials exponentiate(const at::Tensor& x_nV) {
  const at::Tensor most_n1 = x_nV.amax(1, /*keepdim=*/true);
  x_nV.sub_(most_n1).exp_();
  const at::Tensor sums_n1 = x_nV.sum(1, /*keepdim=*/true);
  return {sums_n1, sums_n1.log() + most_n1};
}

/// The type of the products with `hidden`.
inline at::ScalarType product_type(const at::Tensor& hidden) {
  const at::DeviceType device = hidden.device().type();
  return Autocast::is_on(device) ? at::autocast::get_autocast_dtype(device) : hidden.scalar_type();
}

}  // namespace components::loss
