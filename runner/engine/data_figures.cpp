#include "runner/engine/data_figures.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/engine/look_at_data.h"

namespace runner::engine {
namespace {

using components::data::Account;
using components::data::Stream;

constexpr std::int64_t kBinsMax = 32;
constexpr std::size_t kOpenRowsMax = 64;     ///< of packing, as data sets do it
constexpr std::int64_t kSamplesAtOnce = 64;  ///< of a stream

/// Counts what it is given of a stream.
class StreamCounter {
 public:
  StreamCounter(const components::data::Dataset& data, const StreamBatches& batches, DataStats& stats)
      : data_(data),
        batches_(batches),
        stats_(stats),
        used_(static_cast<std::size_t>(stats.vocabulary)),
        padding_(batches.multiple),
        packed_(batches.multiple),
        packer_(std::max<std::int64_t>(1, batches.row_length), [this](std::int64_t length) { add(packed_, length); }) {}

  void add(const Stream& stream, std::span<const Stream::SamplePointer> samples) {
    for (const Stream::SamplePointer& sample : samples) measure(sample->parts());
    components::TensorMap batch;
    stream.collate(samples, batch);
    const at::Tensor& target = batch.at(components::kTarget);
    stats_.target_tokens += target.ne(components::kPadTarget).sum().item<std::int64_t>();
    const at::Tensor ids = batch.at(components::kInput).masked_select(batch.at(components::kAttentionMask));
    for (const std::int64_t id : std::span(ids.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(ids.numel()))) {
      used_[static_cast<std::size_t>(id)] = true;
    }
  }

  void finish() {
    packer_.flush();
    padding_.end_batch();
    packed_.end_batch();
    stats_.padding = padding_.figures();
    if (batches_.row_length > 0) {
      stats_.packed = packed_.figures();
      stats_.row_length = batches_.row_length;
    }
    stats_.lengths = length_figures(lengths_);
    stats_.vocabulary_used = std::count(used_.begin(), used_.end(), true);
  }

 private:
  void measure(const std::vector<components::data::Part>& parts) {
    const std::int64_t length = length_of(parts);
    ++stats_.samples;
    stats_.tokens += length;
    ++lengths_[length];
    add(padding_, length);
    if (batches_.row_length > 0) packer_.add(length);
    for (const auto& part : parts) {
      if (part.cut) ++stats_.cut;
      if (!stats_.longest_part || part.length > stats_.longest_part->length) {
        stats_.longest_part = shown_part(part, data_);
      }
    }
  }

  void add(BatchPadding& padding, std::int64_t length) const {
    padding.add(length);
    if (padding.samples() == batches_.size) padding.end_batch();
  }

  const components::data::Dataset& data_;
  const StreamBatches& batches_;
  DataStats& stats_;
  std::vector<bool> used_;
  std::map<std::int64_t, std::int64_t> lengths_;
  BatchPadding padding_, packed_;
  LengthPacker packer_;
};

}  // namespace

LengthFigures length_figures(const std::map<std::int64_t, std::int64_t>& samples) {
  LengthFigures figures;
  if (samples.empty()) return figures;
  figures.least = samples.begin()->first;
  figures.most = samples.rbegin()->first;
  const std::int64_t range = figures.most - figures.least + 1;
  figures.bin_width = (range + kBinsMax - 1) / kBinsMax;
  figures.bins_from = figures.least;
  figures.bins.resize(static_cast<std::size_t>((range + figures.bin_width - 1) / figures.bin_width));
  std::int64_t count = 0, sum = 0;
  for (const auto& [length, its] : samples) {
    count += its;
    sum += length * its;
    figures.bins[static_cast<std::size_t>((length - figures.least) / figures.bin_width)] += its;
  }
  figures.mean = static_cast<double>(sum) / static_cast<double>(count);
  // The nearest rank: the smallest length that this part of the samples does not exceed.
  const auto rank = [&](std::int64_t percent) {
    std::int64_t left = (percent * count + 99) / 100;
    auto at = samples.begin();
    for (; left > at->second; ++at) left -= at->second;
    return at->first;
  };
  figures.median = rank(50);
  figures.p90 = rank(90);
  figures.p99 = rank(99);
  return figures;
}

void BatchPadding::add(std::int64_t length) {
  ++samples_;
  tokens_ += length;
  longest_ = std::max(longest_, length);
}

void BatchPadding::end_batch() {
  if (samples_ == 0) return;
  const std::int64_t positions = (longest_ + multiple_ - 1) / multiple_ * multiple_ * samples_;
  ++figures_.batches;
  figures_.positions += positions;
  figures_.padding += positions - tokens_;
  samples_ = longest_ = tokens_ = 0;
}

void LengthPacker::add(std::int64_t length) {
  auto row =
      std::find_if(open_.begin(), open_.end(), [&](std::int64_t filled) { return filled + length <= row_length_; });
  if (row == open_.end()) {
    if (open_.size() == kOpenRowsMax) {
      close_(open_.front());
      open_.pop_front();
    }
    row = open_.insert(open_.end(), 0);
  }
  *row += length;
  if (*row != row_length_) return;
  close_(*row);
  open_.erase(row);
}

void LengthPacker::flush() {
  for (const std::int64_t length : open_) close_(length);
  open_.clear();
}

void count_stream(const components::data::Dataset& data, const DataRequest& request, const StreamBatches& batches,
                  DataStats& stats) {
  stats.vocabulary = data.signature().at(components::kInput).vocab_size;
  const auto stream = data.open_stream(batches.order);
  StreamCounter counter(data, batches, stats);
  std::vector<Stream::SamplePointer> samples;
  std::optional<Account> account;
  const auto count = [&] {
    if (samples.empty()) return;
    counter.add(*stream, samples);
    samples.clear();
    if (request.progress) request.progress(stats.samples, request.most);
  };
  for (std::int64_t read = 0; !account;) {
    Stream::SamplePointer sample = stream->next(true);
    if (sample->pass() > 0) {
      account = stream->first_pass();
      RUNNER_ASSERT(account, "a pass has ended in front of a sample of the next one");
      break;
    }
    samples.push_back(std::move(sample));
    if (++read == request.most) {
      account = stream->account();
      account->reasons = stream->skipped_reasons();
      stats.is_part = true;
    }
    if (static_cast<std::int64_t>(samples.size()) == kSamplesAtOnce) count();
  }
  count();
  counter.finish();
  stats.records = account->records;
  stats.dropped = account->dropped;
  stats.skipped = account->skipped;
  stats.reasons = account->reasons;
}

}  // namespace runner::engine
