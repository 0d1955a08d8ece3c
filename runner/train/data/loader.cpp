#include "runner/train/data/loader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "components/data/label/sample_classes.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/train/data/sample_stream.h"

namespace runner::train {

std::vector<std::vector<std::int64_t>> samples_by_class(const components::data::Dataset& data) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_class;
  const std::vector<std::int64_t> classes = components::data::classes_of(data);
  for (std::size_t i = 0; i < classes.size(); ++i) by_class[classes[i]].push_back(static_cast<std::int64_t>(i));
  std::vector<std::vector<std::int64_t>> groups;
  for (auto& [number, samples] : by_class) groups.push_back(std::move(samples));
  return groups;
}

Loader::Loader(const components::data::Dataset& data, Options options)
    : data_(data),
      options_(options),
      groups_(options.balance_classes
                  ? std::make_shared<const std::vector<std::vector<std::int64_t>>>(samples_by_class(data))
                  : nullptr),
      micro_batches_(BatchSchedule::of({.samples = EpochOrder::length(order_options()),
                                        .micro_batch_size = options.micro_batch_size,
                                        .ranks = options.ranks,
                                        .drop_last = options.drop_last,
                                        .even = options.even,
                                        .cuts_last_round = options.cuts_last_round})),
      order_(order_options()),
      stream_(data.is_stream()
                  ? std::make_unique<SampleStream>(data, components::data::StreamOptions{options.shuffle, options.seed})
                  : nullptr),
      expected_(options.micro_batch_size) {
  micro_batches_.rank = options.rank;
  micro_batches_.rank_0_reads = options.rank_0_reads;
  RUNNER_ASSERT(options_.micro_batch_size > 0, "the batch algebra settles a positive micro-batch size");
}

Loader::~Loader() = default;

BatchSchedule Loader::schedule(std::int64_t batch_size) const {
  BatchSchedule schedule = micro_batches_;
  schedule.batch_size = schedule.share_size = batch_size;
  return schedule;
}

// A position of a longer epoch is one of a later epoch: the data may have changed since.
void Loader::seek(Position position) {
  const std::int64_t samples = samples_per_epoch();
  if (samples > 0) position = {position.epoch + position.sample / samples, position.sample % samples};
  position_ = position;
}

EpochOrder::Options Loader::order_options() const {
  if (data_.is_stream()) return {.size = data_.size()};
  EpochOrder::Options order{.size = data_.size(),
                            .block = data_.shuffle_block(),
                            .shuffle = options_.shuffle,
                            .seed = options_.seed,
                            .num_samples = options_.num_samples,
                            .replacement = options_.replacement,
                            .groups = groups_,
                            .seedable = options_.seedable,
                            .one_generator = options_.even && options_.ranks > 1};
  if (options_.group_by_length) {
    order.group = options_.micro_batch_size;
    order.length_of = [&data = data_](std::int64_t sample) { return data.length_of(sample); };
  }
  return order;
}

void Loader::next(std::int64_t count, components::TensorMap& batch) {
  const std::int64_t samples = samples_per_epoch();
  RUNNER_ASSERT(samples > 0, "an empty epoch is refused before training starts");
  RUNNER_ASSERT(count > 0 && position_.sample + count <= samples, "a micro-batch does not cross the end of an epoch");
  batch.clear();
  fetch(count, batch);
  skip(count);
}

// The threads read on from the position at which they were started. A request for anything else (another position after
// a seek, another size at the end of a window) is read by the caller, and the threads restart after it.
void Loader::fetch(std::int64_t count, components::TensorMap& batch) {
  if (options_.num_workers > 0) {
    try {
      if (prefetcher_ == nullptr && count == schedule(expected_).batch_at(position_)) read_ahead(position_);
      if (prefetcher_ != nullptr && prefetcher_->take(position_, count, batch)) return;
    } catch (...) {
      prefetcher_.reset();  // a retry reads the batch again
      throw;
    }
    prefetcher_.reset();
  }
  if (stream_ != nullptr) {
    stream_->collate(stream_->read(position_.sample, count), batch);
  } else {
    data_.fetch_at({position_.epoch, position_.sample}, order_.read(position_.epoch, position_.sample, count), batch);
  }
  if (options_.num_workers > 0) read_ahead(schedule(count).after(position_, count));
}

void Loader::read_ahead(Position start) {
  prefetcher_ = std::make_unique<Prefetcher>(
      claims(), schedule(expected_), start,
      Prefetcher::Options{options_.num_workers, options_.num_workers * options_.prefetch_factor});
}

// A stream is read where a batch is claimed, so in order; its texts are encoded where the batch is made.
Prefetcher::Claim Loader::claims() {
  if (stream_ != nullptr) {
    return [&stream = *stream_](const Position& position, std::int64_t count) -> Prefetcher::Job {
      return [&stream, samples = stream.read(position.sample, count)](components::TensorMap& batch) {
        stream.collate(samples, batch);
      };
    };
  }
  const auto order = std::make_shared<EpochOrder>(order_options());
  return [&data = data_, order](const Position& position, std::int64_t count) -> Prefetcher::Job {
    const auto found = order->read(position.epoch, position.sample, count);
    const components::data::Turn first{position.epoch, position.sample};
    return [&data, first, samples = std::vector<std::int64_t>(found.begin(), found.end())](
               components::TensorMap& batch) { data.fetch_at(first, samples, batch); };
  };
}

core::Node Loader::stream_state() const {
  const bool reads = stream_ != nullptr && (!options_.rank_0_reads || options_.rank == 0);
  return reads ? stream_->state_at(position_.sample) : core::Node::null();
}

components::data::Account Loader::stream_account() const {
  RUNNER_ASSERT(stream_ != nullptr, "only a stream counts its records");
  return stream_->account_at(position_.sample);
}

std::string Loader::stream_unread() const {
  RUNNER_ASSERT(stream_ != nullptr, "only a stream tells of fields after it was read");
  return stream_->unread();
}

void Loader::restore_stream(const core::Node& state) {
  if (stream_ == nullptr || state.is_null()) return;
  prefetcher_.reset();
  stream_->restore(state);
}

void Loader::keep_from(const Position& position) {
  if (stream_ != nullptr) stream_->keep_from(position.sample);
}

std::vector<std::int64_t> Loader::samples_between(Position from, Position to) const {
  std::vector<std::int64_t> samples;
  EpochOrder order(order_options());  // a copy: the loader's own is at the next batch
  for (; from < to; from = {from.epoch + 1, 0}) {
    const std::int64_t end = from.epoch == to.epoch ? to.sample : samples_per_epoch();
    const auto part = order.read(from.epoch, from.sample, end - from.sample);
    samples.insert(samples.end(), part.begin(), part.end());
  }
  return samples;
}

}  // namespace runner::train
