#include "components/part/cached/kv_cache.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "runner/core/error.h"

namespace components::part {
namespace {

constexpr std::int64_t kStepMax = 32;  // elements that a kernel reads of a row at once

std::int64_t room_for(std::int64_t positions) { return (positions + kStepMax - 1) / kStepMax * kStepMax; }

/// A tensor with more room in that dimension, and zeros there.
at::Tensor longer(const at::Tensor& tensor, std::int64_t dimension, std::int64_t size) {
  std::vector<std::int64_t> sizes = tensor.sizes().vec();
  sizes[static_cast<std::size_t>(dimension)] = size;
  at::Tensor grown = at::zeros(sizes, tensor.options());
  grown.narrow(dimension, 0, tensor.size(dimension)).copy_(tensor);
  return grown;
}

}  // namespace

KvCache::KvCache(std::int64_t slots, std::int64_t positions)
    : slots_(slots), positions_(positions), room_(room_for(positions)) {}

void KvCache::reserve(std::int64_t positions) {
  if (positions <= positions_) return;
  positions_ = positions;
  room_ = room_for(positions);
  for (Layer& layer : layers_) {
    if (!layer.k.defined()) continue;
    layer.k = longer(layer.k, layer.turned ? 2 : 1, layer.turned ? room_ : positions_);
    layer.v = longer(layer.v, layer.turned ? 3 : 1, layer.turned ? room_ : positions_);
  }
}

KvCache::Layer& KvCache::layer(std::size_t number, const AttentionOptions& o, const at::TensorOptions& options,
                               bool turned) {
  if (layers_.size() <= number) layers_.resize(number + 1);
  Layer& layer = layers_[number];
  if (layer.k.defined()) {
    RUNNER_ASSERT(layer.turned == turned && layer.k.dtype() == options.dtype(), "one form for all passes");
    return layer;
  }
  // Zeros: what no position has been written to is multiplied with a weight of 0, which only numbers survive.
  layer.turned = turned;
  if (turned) {
    layer.k = at::zeros({slots_, o.kv_heads, room_, o.head}, options);
    layer.v = at::zeros({slots_, o.kv_heads, o.head, room_}, options);
  } else {
    layer.k = at::zeros({slots_, positions_, o.kv_heads, o.head}, options);
    layer.v = at::zeros({slots_, positions_, o.kv_heads, o.head}, options);
  }
  return layer;
}

void KvCache::copy(const Segment& from, std::int64_t to) {
  if (from.slot == to) return;
  if (!sources_.empty()) sources_[static_cast<std::size_t>(to)] = sources_[static_cast<std::size_t>(from.slot)];
  if (from.count == 0) return;
  const auto positions = [&from](const at::Tensor& tensor, std::int64_t slot, std::int64_t dimension) {
    return tensor.select(0, slot).narrow(dimension, from.first, from.count);
  };
  for (const Layer& layer : layers_) {
    if (!layer.k.defined()) continue;
    const std::int64_t of_k = layer.turned ? 1 : 0, of_v = layer.turned ? 2 : 0;
    positions(layer.k, to, of_k).copy_(positions(layer.k, from.slot, of_k));
    positions(layer.v, to, of_v).copy_(positions(layer.v, from.slot, of_v));
  }
}

void KvCache::set_source(std::int64_t slot, std::size_t number, Keys keys) {
  sources_.resize(static_cast<std::size_t>(slots_));
  std::vector<Keys>& of_slot = sources_[static_cast<std::size_t>(slot)];
  if (of_slot.size() <= number) of_slot.resize(number + 1);
  of_slot[number] = std::move(keys);
}

const Keys& KvCache::source(std::int64_t slot, std::size_t number) const {
  return sources_[static_cast<std::size_t>(slot)][number];
}

std::int64_t CachedPass::rows() const {
  std::int64_t rows = 0;
  for (const Segment& segment : segments) rows += segment.count;
  return rows;
}

}  // namespace components::part
