#include "runner/train/data/sample_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace runner::train {
namespace {

/// Marks in front of what is kept, for a return by more than one step.
constexpr std::ptrdiff_t kMarksBehind = 4;

}  // namespace

SampleStream::SampleStream(const components::data::Dataset& data, const components::data::StreamOptions& options)
    : stream_(data.open_stream(options)) {
  RUNNER_ASSERT(stream_ != nullptr, "the data set is read as a stream");
  marks_.emplace(0, stream_->mark());
  next_mark_ = stream_->mark_interval();
}

const SampleStream::Mark& SampleStream::latest_mark(std::int64_t sample) const {
  return std::prev(marks_.upper_bound(sample))->second;
}

/// Marks are at every multiple of the interval, however the stream got there.
components::data::Stream::SamplePointer SampleStream::next(bool wanted) {
  is_whole_ = false;
  auto sample = stream_->next(wanted);
  is_whole_ = true;
  accounts_.insert_or_assign(stream_->position(), stream_->account());
  if (stream_->position() < next_mark_) return sample;
  marks_.emplace(stream_->position(), stream_->mark());
  const std::int64_t interval = stream_->mark_interval();
  next_mark_ = (stream_->position() / interval + 1) * interval;
  return sample;
}

void SampleStream::go_to(std::int64_t sample) {
  const Mark& mark = latest_mark(sample);
  if (!is_whole_ || stream_->position() > sample || stream_->position() < mark->sample()) {
    is_whole_ = false;
    stream_->go_to(*mark);
    is_whole_ = true;
    const std::int64_t interval = stream_->mark_interval();
    next_mark_ = (mark->sample() / interval + 1) * interval;
  }
  while (stream_->position() < sample) next(false);
}

SampleStream::Samples SampleStream::read(std::int64_t begin, std::int64_t count) {
  const std::lock_guard lock(mutex_);
  go_to(begin);
  Samples samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) samples.push_back(next(true));
  return samples;
}

void SampleStream::collate(std::span<const Samples::value_type> samples, components::TensorMap& batch) const {
  batch.clear();
  stream_->collate(samples, batch);
}

components::data::Account SampleStream::account_at(std::int64_t sample) {
  const std::lock_guard lock(mutex_);
  if (const auto found = accounts_.find(sample); found != accounts_.end()) return found->second;
  go_to(sample);
  return stream_->account();
}

core::Node SampleStream::state_at(std::int64_t sample) {
  const std::lock_guard lock(mutex_);
  if (!is_whole_ || stream_->position() < sample) go_to(sample);
  return latest_mark(sample)->to_node();
}

void SampleStream::restore(const core::Node& state) {
  const std::lock_guard lock(mutex_);
  const Mark mark = stream_->mark_of(state);
  marks_.erase(std::next(marks_.begin()), marks_.end());
  accounts_.clear();
  marks_.insert_or_assign(mark->sample(), mark);
  is_whole_ = false;  // the next read goes there
}

void SampleStream::keep_from(std::int64_t sample) {
  const std::lock_guard lock(mutex_);
  accounts_.erase(accounts_.begin(), accounts_.lower_bound(sample));
  const auto kept = std::prev(marks_.upper_bound(sample));
  const auto begin = std::next(marks_.begin());
  if (std::distance(marks_.begin(), kept) <= kMarksBehind) return;
  marks_.erase(begin, std::prev(kept, kMarksBehind - 1));
}

}  // namespace runner::train
