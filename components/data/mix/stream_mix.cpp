#include "components/data/mix/stream_mix.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "components/data/field_count.h"
#include "components/data/mix/joining.h"
#include "components/data/mix/mix_mark.h"
#include "components/data/mix/turns.h"
#include "components/data/stream.h"
#include "components/data/text_utils.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

using runner::core::Node;

/// So that two sets of a mix are not shuffled alike.
constexpr std::uint64_t kBetweenSeeds = 0x9E37'79B9'7F4A'7C15U;

/// What all streams of a mix have in common.
struct Mix {
  BatchSpec signature;
  StreamMixParts parts;
};

/// A sample of one of the sets.
struct SampleOfSet final : Stream::Sample {
  SampleOfSet(Stream::SamplePointer its, std::size_t of_set, std::int64_t pass_of_mix)
      : sample(std::move(its)), set(of_set), pass_number(pass_of_mix) {}
  std::int64_t pass() const override { return pass_number; }
  std::vector<Part> parts() const override { return sample->parts(); }

  Stream::SamplePointer sample;
  std::size_t set;
  std::int64_t pass_number;
};

class MixedStream final : public Stream {
 public:
  MixedStream(std::shared_ptr<const Mix> mix, const StreamOptions& options)
      : mix_(std::move(mix)), taken_(mix_->parts.sets.size()), begun_(taken_.size()) {
    StreamOptions its = options;
    for (const auto& set : mix_->parts.sets) {
      streams_.push_back(set->open_stream(its));
      its.seed += kBetweenSeeds;
    }
    limit_buffer(runner::core::memory_limit() / 2);
  }

  std::int64_t position() const override { return position_; }
  std::optional<Account> first_pass() const override { return first_pass_; }
  std::string skipped_reasons() const override { return texts(&Stream::skipped_reasons); }
  std::string unread() const override { return texts(&Stream::unread); }

  Account account() const override {
    Account all;
    for (const auto& stream : streams_) {
      const Account one = stream->account();
      all.records += one.records;
      all.dropped += one.dropped;
      all.skipped += one.skipped;
    }
    return all;
  }

  SamplePointer next(bool wanted) override {
    if (is_over()) begin_pass();
    const std::size_t set = turn();
    SamplePointer sample = streams_[set]->next(wanted);
    ++taken_[set];
    ++position_;
    return wanted ? std::make_shared<SampleOfSet>(std::move(sample), set, pass_) : nullptr;
  }

  std::int64_t pass_of_next() override {
    if (is_over()) begin_pass();
    return pass_;
  }

  void leave_pass() override {
    if (taken() > 0) begin_pass();
  }

  void limit_buffer(std::int64_t bytes) override {
    for (const auto& stream : streams_) stream->limit_buffer(bytes / static_cast<std::int64_t>(streams_.size()));
  }

  void collate(std::span<const SamplePointer> samples, TensorMap& batch) const override {
    std::vector<std::vector<SamplePointer>> of_sets(streams_.size());
    std::vector<RowsOfSet> all(streams_.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto& sample = static_cast<const SampleOfSet&>(*samples[i]);
      of_sets[sample.set].push_back(sample.sample);
      all[sample.set].rows.push_back(static_cast<std::int64_t>(i));
    }
    for (std::size_t set = 0; set < all.size(); ++set) {
      if (!of_sets[set].empty()) streams_[set]->collate(of_sets[set], all[set].tensors);
    }
    std::erase_if(all, [](const RowsOfSet& set) { return set.rows.empty(); });
    join_rows(all, mix_->signature, *mix_->parts.sets.front(), batch);
  }

  std::shared_ptr<const Mark> mark() const override {
    auto mark = std::make_shared<MixMark>();
    mark->position = position_;
    mark->pass = pass_;
    mark->taken = taken_;
    mark->begun = begun_;
    for (const auto& stream : streams_) mark->sets.push_back(stream->mark());
    return mark;
  }

  std::int64_t mark_interval() const override {
    return std::accumulate(streams_.begin(), streams_.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& stream) { return sum + stream->mark_interval(); });
  }

  std::shared_ptr<const Mark> mark_of(const Node& node) const override {
    return std::make_shared<MixMark>(MixMark::of(node, streams_));
  }

  void go_to(const Mark& mark) override {
    const auto& place = static_cast<const MixMark&>(mark);
    for (std::size_t i = 0; i < streams_.size(); ++i) streams_[i]->go_to(*place.sets[i]);
    position_ = place.position;
    pass_ = place.pass;
    taken_ = place.taken;
    begun_ = place.begun;
    first_pass_.reset();
  }

 private:
  std::int64_t taken() const { return std::accumulate(taken_.begin(), taken_.end(), std::int64_t{0}); }

  /// Whether a set has no sample left in its pass with which that of the mix began.
  bool was_read_whole(std::size_t set) { return taken_[set] > 0 && streams_[set]->pass_of_next() != begun_[set]; }

  /// Asks as few sets as it can: one that is asked reads on, and may find an error before its turn.
  bool is_over() {
    if (!mix_->parts.weights.empty() && !mix_->parts.until_all) return was_read_whole(turn());
    for (std::size_t set = 0; set < streams_.size(); ++set) {
      if (!was_read_whole(set)) return false;
    }
    return true;
  }

  std::size_t turn() {
    if (!mix_->parts.weights.empty()) return next_turn(mix_->parts.weights, taken_);
    std::size_t set = 0;
    while (set + 1 < streams_.size() && was_read_whole(set)) ++set;
    return set;
  }

  void begin_pass() {
    if (pass_ == 0) {
      first_pass_ = account();
      first_pass_->reasons = skipped_reasons();
    }
    ++pass_;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      streams_[i]->leave_pass();
      begun_[i] = streams_[i]->pass_of_next();
      taken_[i] = 0;
    }
  }

  std::string texts(std::string (Stream::*of)() const) const {
    std::string all;
    for (const auto& stream : streams_) {
      const std::string one = (*stream.*of)();
      if (!one.empty()) all += (all.empty() ? "" : "; ") + one;
    }
    return all;
  }

  std::shared_ptr<const Mix> mix_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::int64_t position_ = 0, pass_ = 0;
  std::vector<std::int64_t> taken_;  // samples of each set in this pass
  std::vector<std::int64_t> begun_;  // the pass of each set with which this one began
  std::optional<Account> first_pass_;
};

class StreamMix final : public Dataset, public CountsFields {
 public:
  explicit StreamMix(std::shared_ptr<const Mix> mix) : mix_(std::move(mix)) {}

  const BatchSpec& signature() const override { return mix_->signature; }
  std::int64_t size() const override { return kEndless; }
  void fetch(std::span<const std::int64_t>, TensorMap&) const override {
    RUNNER_ASSERT(false, "a stream is not read by index");
  }
  std::unique_ptr<Stream> open_stream(const StreamOptions& options) const override {
    return std::make_unique<MixedStream>(mix_, options);
  }

  std::string describe() const override {
    const auto& weights = mix_->parts.weights;
    std::string text = counted_large(static_cast<std::int64_t>(sets().size()), "stream", "streams");
    if (!weights.empty()) {
      text += " in turns of " + runner::core::joined(weights, " : ", runner::core::number_text);
    }
    return text + ": " + runner::core::joined(sets(), "; ", [](const auto& set) { return set->describe(); });
  }

  std::int64_t records() const override { return 0; }
  std::int64_t memory_bytes() const override {
    return std::accumulate(sets().begin(), sets().end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& set) { return sum + set->memory_bytes(); });
  }
  std::string decode(std::span<const std::int64_t> ids) const override { return first().decode(ids); }
  std::vector<std::int64_t> encode(const std::string& text) const override { return first().encode(text); }
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer() const override { return first().tokenizer(); }

  std::vector<FieldCount> field_counts() const override {
    std::vector<FieldCount> all;
    for (const auto& set : sets()) add_counts(all, field_counts_of(*set));
    return all;
  }

  std::vector<std::string> files() const override {
    std::vector<std::string> all;
    std::set<std::string> seen;
    for (const auto& set : sets()) {
      for (std::string& file : set->files()) {
        if (seen.insert(file).second) all.push_back(std::move(file));
      }
    }
    return all;
  }

 private:
  const std::vector<std::shared_ptr<const Dataset>>& sets() const { return mix_->parts.sets; }
  const Dataset& first() const { return *sets().front(); }

  std::shared_ptr<const Mix> mix_;
};

}  // namespace

std::shared_ptr<Dataset> make_stream_mix(StreamMixParts parts, const Inputs& inputs) {
  auto signature = joined_signature(parts.sets, inputs);
  if (!signature) return nullptr;
  return std::make_shared<StreamMix>(std::make_shared<Mix>(Mix{std::move(*signature), std::move(parts)}));
}

}  // namespace components::data
