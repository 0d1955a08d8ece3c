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

std::int64_t Loader::batch_at(std::int64_t sample) const {
  return std::min(options_.micro_batch_size, samples_per_epoch() - sample);
}

void Loader::seek(Position position) { position_ = position; }

std::vector<std::int64_t> Loader::order_of(std::int64_t epoch) const {
  if (options_.shuffle) return epoch_order(data_.size(), data_.shuffle_block(), options_.seed, epoch);
  std::vector<std::int64_t> order(static_cast<std::size_t>(data_.size()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

void Loader::order_epoch() {
  if (ordered_epoch_ == position_.epoch) return;
  if (options_.shuffle || order_.empty()) order_ = order_of(position_.epoch);
  ordered_epoch_ = position_.epoch;
}

void Loader::next(std::int64_t count, components::TensorMap& batch) {
  const std::int64_t samples = samples_per_epoch();
  RUNNER_ASSERT(samples > 0, "an empty epoch is refused before training starts");
  RUNNER_ASSERT(count > 0 && position_.sample + count <= samples, "a micro-batch does not cross the end of an epoch");
  order_epoch();
  batch.clear();
  data_.fetch({order_.data() + position_.sample, static_cast<std::size_t>(count)}, batch);
  position_.sample += count;
  if (position_.sample >= samples) position_ = {position_.epoch + 1, 0};
}

std::vector<std::int64_t> Loader::samples_between(Position from, Position to) const {
  std::vector<std::int64_t> samples;
  for (; from < to; from = {from.epoch + 1, 0}) {
    const std::vector<std::int64_t> order = order_of(from.epoch);
    const std::int64_t end = from.epoch == to.epoch ? to.sample : samples_per_epoch();
    samples.insert(samples.end(), order.begin() + from.sample, order.begin() + end);
  }
  return samples;
}

}  // namespace runner::train
