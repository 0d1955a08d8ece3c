#include "runner/train/data/transformed_data.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "components/tensor/tensors.h"

namespace runner::train {

using components::TensorMap;
using components::data::Dataset;
using components::data::Stream;
using components::transform::Draw;
using components::transform::Transform;

namespace {

constexpr const char* kTransforms = "transforms";

/// So that two transforms of a set draw different numbers.
constexpr std::uint64_t kBetweenSeeds = 0x9E37'79B9'7F4A'7C15U;

}  // namespace

struct TransformedData::Chain {
  std::vector<std::shared_ptr<Transform>> transforms;
  std::uint64_t seed = 0;

  void apply(TensorMap& sample, std::int64_t epoch, std::int64_t index) const {
    std::uint64_t its_seed = seed;
    for (const auto& transform : transforms) {
      transform->apply(sample, {its_seed, epoch, index});
      its_seed += kBetweenSeeds;
    }
  }
};

/// The stream of a set. Its samples know their numbers.
class TransformedData::ChangedStream final : public Stream {
 public:
  ChangedStream(std::unique_ptr<Stream> stream, std::shared_ptr<const Chain> chain)
      : stream_(std::move(stream)), chain_(std::move(chain)) {}

  std::int64_t position() const override { return stream_->position(); }
  components::data::Account account() const override { return stream_->account(); }
  std::optional<components::data::Account> first_pass() const override { return stream_->first_pass(); }
  std::string skipped_reasons() const override { return stream_->skipped_reasons(); }
  std::string unread() const override { return stream_->unread(); }

  SamplePointer next(bool wanted) override {
    const std::int64_t number = stream_->position();
    SamplePointer sample = stream_->next(wanted);
    return sample != nullptr ? std::make_shared<Numbered>(std::move(sample), number) : nullptr;
  }

  std::int64_t pass_of_next() override { return stream_->pass_of_next(); }
  void leave_pass() override { stream_->leave_pass(); }
  void limit_buffer(std::int64_t bytes) override { stream_->limit_buffer(bytes); }

  void collate(std::span<const SamplePointer> samples, TensorMap& batch) const override {
    std::vector<SamplePointer> inner;
    for (const SamplePointer& sample : samples) inner.push_back(static_cast<const Numbered&>(*sample).sample);
    stream_->collate(inner, batch);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      TensorMap sample = components::sample_of(batch, static_cast<std::int64_t>(i));
      chain_->apply(sample, 0, static_cast<const Numbered&>(*samples[i]).number);
    }
  }

  std::shared_ptr<const Mark> mark() const override { return stream_->mark(); }
  std::int64_t mark_interval() const override { return stream_->mark_interval(); }
  std::shared_ptr<const Mark> mark_of(const core::Node& node) const override { return stream_->mark_of(node); }
  void go_to(const Mark& mark) override { stream_->go_to(mark); }

 private:
  struct Numbered final : Sample {
    Numbered(SamplePointer its, std::int64_t place) : sample(std::move(its)), number(place) {}
    std::int64_t pass() const override { return sample->pass(); }
    std::vector<components::data::Part> parts() const override { return sample->parts(); }

    SamplePointer sample;
    std::int64_t number;
  };

  std::unique_ptr<Stream> stream_;
  std::shared_ptr<const Chain> chain_;
};

TransformedData::TransformedData(std::shared_ptr<Dataset> set, std::vector<std::shared_ptr<Transform>> transforms,
                                 std::uint64_t seed)
    : WrappedData(std::move(set)),
      chain_(std::make_shared<Chain>(Chain{std::move(transforms), seed})),
      signature_(chain_->transforms.back()->signature()) {}

TransformedData::~TransformedData() = default;

void TransformedData::fetch(std::span<const std::int64_t> indices, TensorMap& batch) const {
  set().fetch(indices, batch);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    TensorMap sample = components::sample_of(batch, static_cast<std::int64_t>(i));
    chain_->apply(sample, 0, indices[i]);
  }
}

void TransformedData::fetch_at(const components::data::Turn& first, std::span<const std::int64_t> indices,
                               TensorMap& batch) const {
  set().fetch_at(first, indices, batch);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    TensorMap sample = components::sample_of(batch, static_cast<std::int64_t>(i));
    chain_->apply(sample, first.epoch, first.position + static_cast<std::int64_t>(i));
  }
}

std::unique_ptr<Stream> TransformedData::open_stream(const components::data::StreamOptions& options) const {
  auto stream = set().open_stream(options);
  return stream != nullptr ? std::make_unique<ChangedStream>(std::move(stream), chain_) : nullptr;
}

double TransformedData::unigram_entropy() const { return std::numeric_limits<double>::quiet_NaN(); }

std::string TransformedData::describe() const {
  std::string text = set().describe();
  for (const auto& transform : chain_->transforms) text += ", " + transform->describe();
  return text;
}

bool has_transforms(const core::Node& block) {
  const core::Node* transforms = block.is_mapping() ? block.find(kTransforms) : nullptr;
  return transforms != nullptr && transforms->is_sequence() && !transforms->items().empty();
}

std::shared_ptr<Dataset> with_transforms(std::shared_ptr<Dataset> set, const std::string& name, const core::Node& block,
                                         const components::data::TokenizerSource& tokenizer, std::uint64_t seed,
                                         core::Diagnostics& diagnostics) {
  if (set == nullptr || !has_transforms(block)) return set;
  auto its_tokenizer = set->tokenizer();
  if (its_tokenizer == nullptr && tokenizer) {
    its_tokenizer = tokenizer();
    if (its_tokenizer == nullptr) return nullptr;  // what is wrong was said
  }
  std::vector<std::shared_ptr<Transform>> transforms;
  components::BatchSpec signature = set->signature();
  for (const core::Node& one : block.find(kTransforms)->items()) {
    auto transform = components::transform::build(one, {signature, its_tokenizer, "data." + name, one, diagnostics});
    if (transform == nullptr) return nullptr;
    signature = transform->signature();
    transforms.push_back(std::move(transform));
  }
  return std::make_shared<TransformedData>(std::move(set), std::move(transforms), seed);
}

}  // namespace runner::train
