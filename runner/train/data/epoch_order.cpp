#include "runner/train/data/epoch_order.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>

#include <algorithm>

#include "runner/core/error.h"

namespace runner::train {
namespace {

constexpr std::int64_t kDrawnTogether = 32;  // with replacement: drawn at a time by torch's RandomSampler

}  // namespace

struct EpochOrder::Draw {
  at::Generator generator;

  std::vector<std::int64_t> permutation(std::int64_t size) const {
    const at::Tensor order = at::randperm(size, generator, at::TensorOptions().dtype(at::kLong));
    const auto* begin = order.const_data_ptr<std::int64_t>();
    return {begin, begin + size};
  }

  std::vector<std::int64_t> any(std::int64_t below, std::int64_t count) const {
    const at::Tensor samples = at::randint(below, {count}, generator, at::TensorOptions().dtype(at::kLong));
    const auto* begin = samples.const_data_ptr<std::int64_t>();
    return {begin, begin + count};
  }

  std::vector<std::int64_t> any_of(const std::vector<std::vector<std::int64_t>>& groups, std::int64_t count) const {
    const std::vector<std::int64_t> chosen = any(static_cast<std::int64_t>(groups.size()), count);
    const at::Tensor places = at::rand({count}, generator, at::TensorOptions().dtype(at::kDouble));
    const auto* place = places.const_data_ptr<double>();
    std::vector<std::int64_t> samples;
    for (const std::int64_t group : chosen) {
      const std::vector<std::int64_t>& of = groups[static_cast<std::size_t>(group)];
      samples.push_back(of[static_cast<std::size_t>(*place++ * static_cast<double>(of.size()))]);
    }
    return samples;
  }
};

EpochOrder::EpochOrder(Options options) : options_(options) {
  if (options_.block <= 0 || options_.block > options_.size) options_.block = std::max<std::int64_t>(1, options_.size);
}

EpochOrder::~EpochOrder() = default;

std::uint64_t EpochOrder::seed_of(std::int64_t epoch) const {
  if (options_.seedable) return options_.seed + static_cast<std::uint64_t>(epoch);
  // Each epoch the loader draws a seed for its workers, then the sampler one for the order.
  const at::Generator generator = at::detail::createCPUGenerator(options_.seed);
  at::Tensor seed = at::empty({}, at::kLong);
  if (options_.one_generator) return static_cast<std::uint64_t>(seed.random_(generator).item<std::int64_t>());
  for (std::int64_t i = 0; i <= epoch; ++i) {
    seed.random_(generator);
    seed.random_(generator);
  }
  return static_cast<std::uint64_t>(seed.item<std::int64_t>());
}

void EpochOrder::start(std::int64_t epoch) {
  epoch_ = epoch;
  draw_ = std::make_unique<Draw>(Draw{at::detail::createCPUGenerator(seed_of(epoch))});
  begin();
  if (options_.seedable || !options_.one_generator) return;
  // torch's RandomSampler ends an epoch with one more permutation and takes the remainder from it, usually none.
  for (std::int64_t before = 0; before < epoch; ++before, begin()) {
    while (held_begin_ + static_cast<std::int64_t>(held_.size()) <= length(options_)) draw_next_block();
  }
}

void EpochOrder::begin() {
  blocks_.clear();
  blocks_drawn_ = 0;
  held_.clear();
  held_begin_ = 0;
}

void EpochOrder::draw_blocks() {
  const std::int64_t blocks = (options_.size + options_.block - 1) / options_.block;
  blocks_ = blocks == 1 ? std::vector<std::int64_t>{0} : draw_->permutation(blocks);
  blocks_drawn_ = 0;
}

void EpochOrder::draw_next_block() {
  RUNNER_ASSERT(options_.size > 0, "an order is of samples");
  held_begin_ += static_cast<std::int64_t>(held_.size());
  if (options_.groups != nullptr) {
    held_ = draw_->any_of(*options_.groups, kDrawnTogether);
    return;
  }
  if (options_.replacement) {
    held_ = draw_->any(options_.size, kDrawnTogether);
    return;
  }
  if (blocks_drawn_ == blocks_.size()) draw_blocks();
  const std::int64_t first = blocks_[blocks_drawn_++] * options_.block;
  held_ = draw_->permutation(std::min(options_.block, options_.size - first));
  for (std::int64_t& sample : held_) sample += first;
  if (options_.group > 0) group_by_length();
}

// Source: transformers' get_length_grouped_indices, which sorts chunks of fifty batches of a permutation. There the
// batches of a chunk come longest first; here in random order, so that lengths do not oscillate.
void EpochOrder::group_by_length() {
  const std::int64_t group = options_.group, stretch = kBatchesGrouped * group;
  const auto size = static_cast<std::int64_t>(held_.size());
  for (std::int64_t begin = 0; begin < size; begin += stretch) {
    const std::int64_t count = std::min(stretch, size - begin);
    std::vector<std::int64_t> sorted(held_.begin() + begin, held_.begin() + begin + count);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [this](std::int64_t a, std::int64_t b) { return options_.length_of(a) > options_.length_of(b); });
    const std::int64_t batches = count / group;  // the short last batch stays last
    auto to = held_.begin() + begin;
    for (const std::int64_t batch : draw_->permutation(batches)) {
      to = std::copy_n(sorted.begin() + batch * group, group, to);
    }
    std::copy(sorted.begin() + batches * group, sorted.end(), to);
  }
}

std::int64_t EpochOrder::sample_at(std::int64_t epoch, std::int64_t position) {
  if (!options_.shuffle) return position;
  if (epoch != epoch_ || position < held_begin_) start(epoch);
  while (position >= held_begin_ + static_cast<std::int64_t>(held_.size())) draw_next_block();
  return held_[static_cast<std::size_t>(position - held_begin_)];
}

std::span<const std::int64_t> EpochOrder::read(std::int64_t epoch, std::int64_t begin, std::int64_t count) {
  found_.resize(static_cast<std::size_t>(count));
  const std::int64_t samples = length(options_);
  for (std::int64_t& found : found_) found = sample_at(epoch, begin++ % samples);
  return found_;
}

}  // namespace runner::train
