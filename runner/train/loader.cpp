#include "runner/train/loader.h"

#include <algorithm>

#include "components/tensors.h"
#include "runner/core/error.h"

namespace runner::train {
Loader::Loader(const components::data::Dataset& data, Options options)
    : data_(data), options_(options), order_(order_options()) {
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

EpochOrder::Options Loader::order_options() const {
  return {data_.size(), data_.shuffle_block(), options_.shuffle, options_.seed};
}

void Loader::next(std::int64_t count, components::TensorMap& batch) {
  const std::int64_t samples = samples_per_epoch();
  RUNNER_ASSERT(samples > 0, "an empty epoch is refused before training starts");
  RUNNER_ASSERT(count > 0 && position_.sample + count <= samples, "a micro-batch does not cross the end of an epoch");
  batch.clear();
  data_.fetch(order_.read(position_.epoch, position_.sample, count), batch);
  position_.sample += count;
  if (position_.sample >= samples) position_ = {position_.epoch + 1, 0};
}

std::vector<std::int64_t> Loader::samples_between(Position from, Position to) const {
  std::vector<std::int64_t> samples;
  EpochOrder order(order_options());  // of its own: the loader's stands where the next batch is
  for (; from < to; from = {from.epoch + 1, 0}) {
    const std::int64_t end = from.epoch == to.epoch ? to.sample : samples_per_epoch();
    const auto part = order.read(from.epoch, from.sample, end - from.sample);
    samples.insert(samples.end(), part.begin(), part.end());
  }
  return samples;
}

}  // namespace runner::train
