// B: samples   T: positions

#include "components/tensor/row_notes.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"

namespace components {
namespace {

/// Values on the CPU, or null.
template <typename T>
const T* values_of(const at::Tensor& dense) {
  return dense.defined() ? dense.const_data_ptr<T>() : nullptr;
}

}  // namespace

void note_rows(TensorMap& batch, bool one_shape) {
  const at::Tensor* const positions_BT = batch.find(kPositions);
  const at::Tensor* const mask_BT = batch.find(kAttentionMask);
  const at::Tensor* const shape = positions_BT != nullptr ? positions_BT : mask_BT;
  if (shape == nullptr || !shape->is_cpu() || (one_shape && mask_BT != nullptr)) return;
  const at::Tensor dense_positions = positions_BT != nullptr ? positions_BT->contiguous() : at::Tensor();
  const at::Tensor dense_mask = mask_BT != nullptr ? mask_BT->to(at::kBool).contiguous() : at::Tensor();
  const auto* const position = values_of<std::int64_t>(dense_positions);
  const auto* const real = values_of<bool>(dense_mask);
  const std::int64_t length = shape->size(1), all = shape->numel();
  const auto begins_at = [&](std::int64_t i) { return i % length == 0 || (position != nullptr && position[i] == 0); };
  bool is_packed = false, is_scattered = false, has_real = false;
  for (std::int64_t i = 0; i < all; ++i) {
    if (begins_at(i)) has_real = false;
    is_packed |= i % length != 0 && begins_at(i);
    if (real == nullptr || !real[i]) continue;
    const bool after_padding = i % length != 0 && !real[i - 1];
    if (after_padding && has_real) return;
    is_scattered |= after_padding;
    has_real = true;
  }
  if (!is_packed && !is_scattered && !one_shape) return;
  std::vector<std::int32_t> begins;
  std::vector<std::int64_t> places;
  bool begins_here = false;  // also where its first positions are no real ones
  for (std::int64_t i = 0; i < all; ++i) {
    begins_here |= begins_at(i);
    if (is_scattered && !real[i]) continue;
    if (begins_here) begins.push_back(static_cast<std::int32_t>(places.size()));
    begins_here = false;
    places.push_back(i);
  }
  begins.push_back(static_cast<std::int32_t>(places.size()));
  std::int32_t longest = 0;
  for (std::size_t i = 1; i < begins.size(); ++i) longest = std::max(longest, begins[i] - begins[i - 1]);
  if (one_shape) {  // empty documents behind the others
    begins.resize(static_cast<std::size_t>(all + 1), begins.back());
    longest = static_cast<std::int32_t>(length);
  }
  batch.set(kDocumentBegins, at::tensor(begins, at::kInt));
  batch.set(kLongestDocument, at::scalar_tensor(longest, at::kLong));
  if (is_scattered) batch.set(kRealPlaces, at::tensor(places, at::kLong));
}

}  // namespace components
