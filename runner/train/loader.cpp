#include "runner/train/loader.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include <algorithm>
#include <numeric>

#include "components/tensors.h"
#include "runner/core/error.h"

namespace runner::train {
namespace {

std::vector<std::int64_t> permutation(std::int64_t size, const at::Generator& generator) {
  const at::Tensor order = at::randperm(size, generator, at::TensorOptions().dtype(at::kLong));
  const auto* begin = order.const_data_ptr<std::int64_t>();
  return {begin, begin + size};
}

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t size, std::int64_t block, std::uint64_t seed, std::int64_t epoch) {
  const at::Generator generator = at::detail::createCPUGenerator(seed + static_cast<std::uint64_t>(epoch));
  if (block <= 0 || block >= size) return permutation(size, generator);
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(size));
  for (const std::int64_t b : permutation((size + block - 1) / block, generator)) {
    const std::int64_t begin = b * block;
    for (const std::int64_t i : permutation(std::min(block, size - begin), generator)) order.push_back(begin + i);
  }
  return order;
}

Loader::Loader(const components::data::Dataset& data, Options options) : data_(data), options_(options) {
  RUNNER_ASSERT(options_.micro_batch_size > 0, "the batch algebra settles a positive micro-batch size");
}

std::int64_t Loader::samples_per_epoch() const {
  const std::int64_t size = data_.size();
  return options_.drop_last ? size - size % options_.micro_batch_size : size;
}

std::int64_t Loader::batches_per_epoch() const {
  return (samples_per_epoch() + options_.micro_batch_size - 1) / options_.micro_batch_size;
}

void Loader::seek(Position position) { position_ = position; }

void Loader::order_epoch() {
  if (ordered_epoch_ == position_.epoch) return;
  if (options_.shuffle) {
    order_ = epoch_order(data_.size(), data_.shuffle_block(), options_.seed, position_.epoch);
  } else if (order_.empty()) {
    order_.resize(static_cast<std::size_t>(data_.size()));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
  }
  ordered_epoch_ = position_.epoch;
}

std::int64_t Loader::next(components::TensorMap& batch, bool& epoch_ended) {
  const std::int64_t samples = samples_per_epoch();
  RUNNER_ASSERT(samples > 0, "an empty epoch is refused before training starts");
  order_epoch();
  const std::int64_t count = std::min(options_.micro_batch_size, samples - position_.sample);
  batch.clear();
  data_.fetch({order_.data() + position_.sample, static_cast<std::size_t>(count)}, batch);
  position_.sample += count;
  epoch_ended = position_.sample >= samples;
  if (epoch_ended) position_ = {position_.epoch + 1, 0};
  return count;
}

}  // namespace runner::train
