#include "components/generation/passes.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>

#include <algorithm>

#include "components/block/block.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"

namespace components::generation {
namespace {

at::Device device_of(const model::Model& model) { return model.parameters().front().tensor.device(); }

at::Tensor to_tensor(const std::vector<std::int64_t>& ids, const at::Device& device) {
  const at::Tensor on_cpu = at::empty({static_cast<std::int64_t>(ids.size())}, at::kLong);
  std::copy(ids.begin(), ids.end(), on_cpu.mutable_data_ptr<std::int64_t>());
  return on_cpu.to(device);
}

/// The batch of one text, all of whose positions are real.
void set_source(TensorMap& batch, std::span<const std::int32_t> ids, const model::Model& model) {
  batch.set(kInput, to_tensor({ids.begin(), ids.end()}, device_of(model)).unsqueeze(0));
  batch.set(kAttentionMask, at::ones_like(batch.at(kInput), at::kBool));
}

class CachedPasses final : public Passes {
 public:
  CachedPasses(const model::Model& model, std::int64_t slots, std::int64_t positions, const AutocastOptions& autocast)
      : model_(model), cache_(slots, positions), autocast_(autocast) {}

  at::Tensor run(std::span<const Feed> feeds) override {
    part::CachedPass pass{cache_, {}, autocast_.type == AutocastOptions::Type::kBf16};
    std::vector<std::int64_t> ids;
    for (const Feed& feed : feeds) {
      const auto last = static_cast<std::int64_t>(feed.tokens.size());
      pass.segments.push_back({feed.slot, feed.first, last - feed.first});
      ids.insert(ids.end(), feed.tokens.begin() + feed.first, feed.tokens.end());
    }
    const Autocast autocast(autocast_);
    TensorMap activations;
    activations.set(model_.decoder_start() ? kDecoderInput : kInput, to_tensor(ids, device_of(model_)));
    for (const auto& block : model_.blocks()) {
      if (!block->encodes()) model_.decode_block(*block, activations, pass);
    }
    return activations.at(kOutput).cpu();
  }

  void encode(std::int64_t slot, std::span<const std::int32_t> source) override {
    const Autocast autocast(autocast_);
    TensorMap activations;
    set_source(activations, source, model_);
    for (const auto& block : model_.blocks()) {
      block->encodes() ? model_.encode_block(*block, activations)
                       : model_.keep_source(*block, activations, cache_, slot);
    }
  }

  void reserve(std::int64_t positions) override { cache_.reserve(positions); }
  void copy(const part::Segment& from, std::int64_t to) override { cache_.copy(from, to); }

 private:
  const model::Model& model_;
  part::KvCache cache_;
  AutocastOptions autocast_;
};

class WholePasses final : public Passes {
 public:
  WholePasses(const model::Model& model, std::int64_t positions, const AutocastOptions& autocast)
      : model_(model), positions_(positions), autocast_(autocast) {}

  at::Tensor run(std::span<const Feed> feeds) override {
    std::vector<at::Tensor> rows;
    for (const Feed& feed : feeds) {
      std::vector<std::int64_t> ids(feed.tokens.begin(), feed.tokens.end());
      const auto some = static_cast<std::int64_t>(ids.size());
      if (positions_ > 0 && some > positions_) ids.erase(ids.begin(), ids.begin() + (some - positions_));
      TensorMap activations;
      if (model_.decoder_start()) {
        activations.set(kDecoderInput, to_tensor(ids, device_of(model_)).unsqueeze(0));
        set_source(activations, sources_[static_cast<std::size_t>(feed.slot)], model_);
      } else {
        set_source(activations, {feed.tokens.data() + (some - std::ssize(ids)), ids.size()}, model_);
      }
      activations.set(kPositions,
                      at::arange(activations.at(kInput).size(1), activations.at(kInput).options()).unsqueeze(0));
      const Autocast autocast(autocast_);
      model_.forward(activations);
      at::Tensor logits = activations.at(kOutput);
      if (logits.dim() == 3) logits = logits.select(1, -1);
      rows.push_back(logits.to(at::kFloat).cpu());
    }
    return at::cat(rows, 0).contiguous();
  }

  void encode(std::int64_t slot, std::span<const std::int32_t> source) override {
    const auto at = static_cast<std::size_t>(slot);
    if (sources_.size() <= at) sources_.resize(at + 1);
    sources_[at] = {source.begin(), source.end()};
  }
  void reserve(std::int64_t) override {}
  void copy(const part::Segment& from, std::int64_t to) override {
    const auto slot = static_cast<std::size_t>(from.slot);
    if (slot < sources_.size()) encode(to, std::vector(sources_[slot]));
  }

 private:
  const model::Model& model_;
  std::vector<std::vector<std::int32_t>> sources_;  // by slot
  std::int64_t positions_;
  AutocastOptions autocast_;
};

}  // namespace

std::unique_ptr<Passes> cached_passes(const model::Model& model, std::int64_t slots, std::int64_t positions,
                                      const AutocastOptions& autocast) {
  return std::make_unique<CachedPasses>(model, slots, positions, autocast);
}

std::unique_ptr<Passes> whole_passes(const model::Model& model, std::int64_t positions,
                                     const AutocastOptions& autocast) {
  return std::make_unique<WholePasses>(model, positions, autocast);
}

}  // namespace components::generation
