#include "runner/train/data/transformed_data.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/pad_sequence.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "components/tensor/tensors.h"

namespace runner::train {

using components::TensorMap;
using components::data::Dataset;
using components::data::Part;
using components::data::Stream;
using components::data::Turn;
using components::transform::Transform;

namespace {

constexpr const char* kTransforms = "transforms";

/// So that two transforms of a set draw different numbers.
constexpr std::uint64_t kBetweenSeeds = 0x9E37'79B9'7F4A'7C15U;

/// Of a batch of one sample: those that count.
std::int64_t positions_of(const TensorMap& sample) {
  const at::Tensor* mask = sample.find(components::kAttentionMask);
  return mask != nullptr ? mask->sum().item<std::int64_t>() : sample.at(components::kInput).size(1);
}

std::int64_t targets_of(const TensorMap& sample) {
  return sample.at(components::kTarget).ne(components::kPadTarget).sum().item<std::int64_t>();
}

/// Which of a changed sample's positions come from which part is not known: one part, which begins where the first
/// does.
std::vector<Part> parts_of_changed(const std::vector<Part>& parts, const TensorMap& sample) {
  Part whole{0, positions_of(sample)};
  if (!parts.empty()) whole.record = parts.front().record;
  whole.cut = std::ranges::any_of(parts, &Part::cut);
  return {whole};
}

/// The positions of a batch of one sample that its mask has.
TensorMap without_padding(const TensorMap& sample) {
  const at::Tensor* mask = sample.find(components::kAttentionMask);
  if (mask == nullptr) return sample;
  const at::Tensor places = (*mask)[0].nonzero().squeeze(1);
  TensorMap own;
  for (const auto& [name, tensor] : sample.items()) {
    own.set(name, tensor.sizes() == mask->sizes() ? tensor.index_select(1, places) : tensor);
  }
  return own;
}

}  // namespace

struct TransformedData::Chain {
  std::vector<std::shared_ptr<Transform>> transforms;
  Options options;
  components::BatchSpec signature = transforms.back()->signature();
  bool changes_lengths = std::ranges::any_of(transforms, &Transform::changes_lengths);

  /// `at(i)`: where an epoch reads sample `i` of the batch: its number, and its place.
  template <typename At>
  void apply(std::int64_t samples, const At& at, TensorMap& batch) const {
    std::vector<TensorMap> changed;
    for (std::int64_t i = 0; i < samples; ++i) {
      TensorMap sample = components::sample_of(batch, i);
      if (changes_lengths) sample = without_padding(sample);
      std::uint64_t seed = options.seed;
      for (const auto& transform : transforms) {
        transform->apply(sample, {seed, at(i).epoch, at(i).position});
        seed += kBetweenSeeds;
      }
      if (changes_lengths) changed.push_back(std::move(sample));
    }
    if (!changes_lengths) return;
    batch.clear();
    for (const components::TensorSpec& spec : signature.tensors) batch.set(spec.name, filled(changed, spec));
  }

 private:
  /// [B, T] of samples [1, t].
  at::Tensor filled(const std::vector<TensorMap>& samples, const components::TensorSpec& spec) const {
    std::vector<at::Tensor> rows;
    for (const TensorMap& sample : samples) rows.push_back(sample.at(spec.name)[0]);
    const std::int64_t fill = (*std::ranges::find_if(transforms, &Transform::changes_lengths))->fill_of(spec.name);
    const at::Tensor batch = at::pad_sequence(rows, true, static_cast<double>(fill));
    const std::int64_t over = batch.size(1) % options.multiple;
    return over == 0 ? batch : at::constant_pad_nd(batch, {0, options.multiple - over}, fill);
  }
};

/// The stream of a set. Its samples know their numbers.
class TransformedData::ChangedStream final : public Stream {
 public:
  ChangedStream(std::shared_ptr<Stream> stream, std::shared_ptr<const Chain> chain)
      : stream_(std::move(stream)), chain_(std::move(chain)) {}

  std::int64_t position() const override { return stream_->position(); }
  components::data::Account account() const override { return stream_->account(); }
  std::optional<components::data::Account> first_pass() const override { return stream_->first_pass(); }
  std::string skipped_reasons() const override { return stream_->skipped_reasons(); }
  std::string unread() const override { return stream_->unread(); }

  SamplePointer next(bool wanted) override {
    const std::int64_t number = stream_->position();
    SamplePointer sample = stream_->next(wanted);
    return sample != nullptr ? std::make_shared<Numbered>(std::move(sample), number, stream_, chain_) : nullptr;
  }

  std::int64_t pass_of_next() override { return stream_->pass_of_next(); }
  void leave_pass() override { stream_->leave_pass(); }
  void limit_buffer(std::int64_t bytes) override { stream_->limit_buffer(bytes); }

  void collate(std::span<const SamplePointer> samples, TensorMap& batch) const override {
    std::vector<SamplePointer> inner;
    std::vector<std::int64_t> numbers;
    for (const SamplePointer& sample : samples) {
      inner.push_back(static_cast<const Numbered&>(*sample).sample);
      numbers.push_back(static_cast<const Numbered&>(*sample).number);
    }
    write(inner, numbers, batch, *stream_, *chain_);
  }

  std::shared_ptr<const Mark> mark() const override { return stream_->mark(); }
  std::int64_t mark_interval() const override { return stream_->mark_interval(); }
  std::shared_ptr<const Mark> mark_of(const core::Node& node) const override { return stream_->mark_of(node); }
  void go_to(const Mark& mark) override { stream_->go_to(mark); }

 private:
  static void write(std::span<const SamplePointer> samples, const std::vector<std::int64_t>& numbers, TensorMap& batch,
                    const Stream& stream, const Chain& chain) {
    stream.collate(samples, batch);
    chain.apply(
        std::ssize(samples),
        [&](std::int64_t i) {
          return Turn{0, numbers[static_cast<std::size_t>(i)]};
        },
        batch);
  }

  struct Numbered final : Sample {
    Numbered(SamplePointer its, std::int64_t place, std::shared_ptr<const Stream> of,
             std::shared_ptr<const Chain> changes)
        : sample(std::move(its)), number(place), stream(std::move(of)), chain(std::move(changes)) {}
    std::int64_t pass() const override { return sample->pass(); }
    std::vector<Part> parts() const override {
      if (!chain->changes_lengths) return sample->parts();
      TensorMap one;
      write({&sample, 1}, {number}, one, *stream, *chain);
      return parts_of_changed(sample->parts(), one);
    }

    SamplePointer sample;
    std::int64_t number;
    std::shared_ptr<const Stream> stream;
    std::shared_ptr<const Chain> chain;
  };

  std::shared_ptr<Stream> stream_;
  std::shared_ptr<const Chain> chain_;
};

TransformedData::TransformedData(std::shared_ptr<Dataset> set, std::vector<std::shared_ptr<Transform>> transforms,
                                 const Options& options)
    : WrappedData(std::move(set)),
      chain_(std::make_shared<Chain>(Chain{std::move(transforms), options})),
      signature_(chain_->signature) {
  if (!chain_->changes_lengths) return;
  for (components::TensorSpec& spec : signature_.tensors) {
    const std::int64_t over = spec.max_length % options.multiple;
    if (over == 0) continue;
    spec.max_length += options.multiple - over;
    spec.padded = true;
  }
}

TransformedData::~TransformedData() = default;

void TransformedData::fetch(std::span<const std::int64_t> indices, TensorMap& batch) const {
  set().fetch(indices, batch);
  chain_->apply(
      std::ssize(indices),
      [&](std::int64_t i) {
        return Turn{0, indices[static_cast<std::size_t>(i)]};
      },
      batch);
}

void TransformedData::fetch_at(const Turn& first, std::span<const std::int64_t> indices, TensorMap& batch) const {
  set().fetch_at(first, indices, batch);
  chain_->apply(
      std::ssize(indices),
      [&](std::int64_t i) {
        return Turn{first.epoch, first.position + i};
      },
      batch);
}

std::unique_ptr<Stream> TransformedData::open_stream(const components::data::StreamOptions& options) const {
  auto stream = set().open_stream(options);
  return stream != nullptr ? std::make_unique<ChangedStream>(std::move(stream), chain_) : nullptr;
}

std::int64_t TransformedData::length_of(std::int64_t index) const {
  std::int64_t length = set().length_of(index);
  if (length == 0) return 0;
  for (const auto& transform : chain_->transforms) length = transform->longest_of(length);
  return length;
}

std::int64_t TransformedData::tokens_per_sample() const {
  if (!chain_->changes_lengths) return set().tokens_per_sample();
  return signature_.padded() ? 0 : signature_.at(components::kTarget).max_length;
}

std::int64_t TransformedData::predicted_positions(std::int64_t index) const {
  return chain_->changes_lengths ? targets_of(fetched(index)) : set().predicted_positions(index);
}

std::vector<Part> TransformedData::parts_of(std::int64_t index) const {
  const std::vector<Part> parts = set().parts_of(index);
  return chain_->changes_lengths ? parts_of_changed(parts, fetched(index)) : parts;
}

TensorMap TransformedData::fetched(std::int64_t index) const {
  TensorMap sample;
  fetch({&index, 1}, sample);
  return sample;
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

std::shared_ptr<Dataset> with_transforms(std::shared_ptr<Dataset> set, const components::data::Inputs& inputs) {
  if (set == nullptr || !has_transforms(inputs.block)) return set;
  auto tokenizer = set->tokenizer();
  if (tokenizer == nullptr && inputs.tokenizer) {
    tokenizer = inputs.tokenizer();
    if (tokenizer == nullptr) return nullptr;  // what is wrong was said
  }
  TransformedData::Options options{.seed = inputs.seed};
  const core::Node* multiple = inputs.block.find("pad_to_multiple_of");
  if (multiple != nullptr && multiple->is_integer()) options.multiple = multiple->as_integer();
  std::vector<std::shared_ptr<Transform>> transforms;
  components::BatchSpec signature = set->signature();
  for (const core::Node& one : inputs.block.find(kTransforms)->items()) {
    auto transform = components::transform::build(
        one, {signature, tokenizer, "data." + inputs.name, one, inputs.diagnostics, inputs.decoder.start});
    if (transform == nullptr) return nullptr;
    signature = transform->signature();
    transforms.push_back(std::move(transform));
  }
  return std::make_shared<TransformedData>(std::move(set), std::move(transforms), options);
}

}  // namespace runner::train
