#include "runner/train/strategy/row_shards.h"

#include <ATen/core/Tensor.h>

#include <numeric>

namespace runner::train {
namespace {

std::int64_t row_elements(const at::Tensor& whole) {
  return whole.dim() == 0 || whole.size(0) == 0 ? 1 : whole.numel() / whole.size(0);
}

Rows rows_of(const at::Tensor& whole, const ShardPlace& place) {
  return rows_of(whole.dim() == 0 ? 1 : whole.size(0), row_elements(whole), place);
}

std::int64_t rounded_up(std::int64_t elements, std::int64_t block) { return (elements + block - 1) / block; }

}  // namespace

at::Tensor shard_of(const at::Tensor& whole, const ShardPlace& place) {
  const at::Tensor rows = whole.dim() == 0 ? whole.view({1}) : whole;
  const Rows mine = rows_of(whole, place);
  return rows.narrow(0, mine.first, mine.count);
}

core::RowsPlace place_of(const at::Tensor& whole, const ShardPlace& place) {
  return {whole.sizes().vec(), rows_of(whole, place).first};
}

std::vector<std::int64_t> shard_sizes(const at::Tensor& whole, const ShardPlace& place) {
  std::vector<std::int64_t> sizes = whole.sizes().vec();
  if (sizes.empty()) sizes.push_back(1);
  sizes.front() = rows_of(whole, place).count;
  return sizes;
}

std::int64_t block_count(const at::Tensor& whole, const ShardPlace& place) {
  return place.block > 0 ? rounded_up(whole.numel(), place.block) : 0;
}

Rows blocks_of(const at::Tensor& whole, const ShardPlace& place) {
  const Rows mine = rows_of(whole, place);
  const std::int64_t each = row_elements(whole), first = rounded_up(mine.first * each, place.block);
  return {first, rounded_up((mine.first + mine.count) * each, place.block) - first};
}

std::vector<int> deal(const components::NamedTensors& parameters, int processes) {
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return parameters[a].tensor.numel() > parameters[b].tensor.numel();
  });
  std::vector<std::int64_t> elements(static_cast<std::size_t>(processes));
  std::vector<int> owners(parameters.size());
  for (const std::size_t i : order) {
    const auto least = std::min_element(elements.begin(), elements.end());
    *least += parameters[i].tensor.numel();
    owners[i] = static_cast<int>(least - elements.begin());
  }
  return owners;
}

}  // namespace runner::train
