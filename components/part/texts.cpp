// B: samples   T: positions of a padded row   N: positions of all texts

#include "components/part/texts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "components/tensor/row_notes.h"
#include "components/tensor/tensors.h"

namespace components::part {
namespace {

std::int64_t longest_of(const std::vector<std::int64_t>& begins) {
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < begins.size(); ++i) longest = std::max(longest, begins[i] - begins[i - 1]);
  return longest;
}

}  // namespace

at::Tensor Texts::gathered(const at::Tensor& padded_BT) const {
  return padded_BT.flatten(0, 1).index_select(0, places).unsqueeze(0);
}

at::Tensor Texts::padded_out(const at::Tensor& gathered_1N) const {
  const at::Tensor rows = gathered_1N.squeeze(0);
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes[0] = count() * padded;
  const at::Tensor all = at::zeros(sizes, rows.options()).index_copy(0, places, rows);
  return all.unflatten(0, {count(), padded});
}

at::Tensor Texts::first_of_each(const at::Tensor& gathered_1N) const {
  const at::Tensor firsts = at::tensor(at::ArrayRef<std::int64_t>(begins).slice(0, begins.size() - 1), at::kLong);
  return gathered_1N.squeeze(0).index_select(0, firsts);
}

Dropout Texts::of_places(const Dropout& dropout) const {
  return dropout.of_rows(places.const_data_ptr<std::int64_t>());
}

std::optional<Texts> texts_of(const at::Tensor& mask_BT) {
  const at::Tensor dense = mask_BT.to(at::kBool).contiguous();
  const auto* const real = dense.const_data_ptr<bool>();
  const std::int64_t rows = dense.size(0), length = dense.size(1);
  Texts texts;
  texts.padded = length;
  texts.begins.push_back(0);
  std::vector<std::int64_t> places;
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool* const begin = real + row * length;
    const auto real_ones = std::find(begin, begin + length, false) - begin;
    if (std::find(begin + real_ones, begin + length, true) != begin + length) return std::nullopt;
    const std::int64_t kept = std::max<std::int64_t>(real_ones, 1);
    for (std::int64_t i = 0; i < kept; ++i) places.push_back(row * length + i);
    texts.begins.push_back(static_cast<std::int64_t>(places.size()));
  }
  if (length == 0 || texts.positions() == rows * length) return std::nullopt;
  texts.places = at::tensor(places, at::kLong);
  texts.longest = longest_of(texts.begins);
  return texts;
}

void note_texts(TensorMap& activations, const Texts& texts) {
  activations.set(kTextBegins, at::tensor(texts.begins, at::kLong));
  activations.set(kTextPlaces, texts.places);
}

std::optional<Texts> noted_texts(const TensorMap& activations, const at::Tensor& x) {
  const at::Tensor* const places = activations.find(kTextPlaces);
  // Of an earlier pass with the same map, whose texts were gathered, x tells itself apart: it has all positions.
  if (places == nullptr || x.size(0) != 1 || x.size(1) != places->numel()) return std::nullopt;
  const at::Tensor& begins = activations.at(kTextBegins);
  const auto* const begin = begins.const_data_ptr<std::int64_t>();
  Texts texts{{begin, begin + begins.numel()}, *places, activations.at(kAttentionMask).size(1), 0};
  texts.longest = longest_of(texts.begins);
  return texts;
}

}  // namespace components::part
