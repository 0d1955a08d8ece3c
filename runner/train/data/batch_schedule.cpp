#include "runner/train/data/batch_schedule.h"

#include <algorithm>

namespace runner::train {

// When all ranks get equally many micro-batches, repeated samples follow the others as if there were more samples.
BatchSchedule BatchSchedule::of(const Options& options) {
  BatchSchedule schedule;
  schedule.batch_size = schedule.share_size = options.micro_batch_size;
  schedule.ranks = options.ranks;
  schedule.samples_per_epoch = options.samples;
  const bool even = options.even && options.ranks > 1;
  const std::int64_t round = even ? options.micro_batch_size * options.ranks : options.micro_batch_size;
  const std::int64_t rest = options.samples % round;
  if (options.drop_last) schedule.samples_per_epoch -= rest;
  if (!even || options.drop_last || rest == 0) return schedule;
  std::int64_t share = options.micro_batch_size;
  if (options.cuts_last_round) {
    share = (rest + options.ranks - 1) / options.ranks;
    schedule.tail_begin = options.samples - rest;
    schedule.tail_size = share;
  }
  schedule.samples_per_epoch += share * options.ranks - rest;
  return schedule;
}

std::int64_t BatchSchedule::share_at(std::int64_t sample) const {
  if (sample < tail_begin) return sample / share_size;
  return tail_begin / share_size + (sample - tail_begin) / tail_size;
}

std::int64_t BatchSchedule::shares_per_epoch() const {
  return samples_per_epoch == 0 ? 0 : share_at(samples_per_epoch - 1) + 1;
}

std::int64_t BatchSchedule::batch_at(const Position& position) const {
  const std::int64_t sample = position.sample;
  if (sample < tail_begin) return std::min(batch_size, std::min(tail_begin, samples_per_epoch) - sample);
  return std::min(batch_size, tail_size - (sample - tail_begin) % tail_size);
}

BatchSchedule::Position BatchSchedule::after(Position position, std::int64_t count) const {
  position.sample += count;
  return position.sample < samples_per_epoch ? position : Position{position.epoch + 1, 0};
}

int BatchSchedule::rank_at(const Position& position) const {
  return static_cast<int>((position.epoch * shares_per_epoch() + share_at(position.sample)) % ranks);
}

BatchSchedule::Position BatchSchedule::first_mine(Position position) const {
  while (!is_mine(position)) position = after(position, batch_at(position));
  return position;
}

}  // namespace runner::train
