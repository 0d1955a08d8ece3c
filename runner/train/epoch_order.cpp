#include "runner/train/epoch_order.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include <algorithm>
#include <numeric>

#include "runner/core/error.h"

namespace runner::train {

struct EpochOrder::Draw {
  at::Generator generator;

  std::vector<std::int64_t> permutation(std::int64_t size) const {
    const at::Tensor order = at::randperm(size, generator, at::TensorOptions().dtype(at::kLong));
    const auto* begin = order.const_data_ptr<std::int64_t>();
    return {begin, begin + size};
  }
};

EpochOrder::EpochOrder(Options options) : options_(options) {
  if (options_.block <= 0 || options_.block > options_.size) options_.block = std::max<std::int64_t>(1, options_.size);
}

EpochOrder::~EpochOrder() = default;

void EpochOrder::start(std::int64_t epoch) {
  epoch_ = epoch;
  const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(epoch);
  draw_ = std::make_unique<Draw>(Draw{at::detail::createCPUGenerator(seed)});
  const std::int64_t blocks = (options_.size + options_.block - 1) / options_.block;
  blocks_ = blocks == 1 ? std::vector<std::int64_t>{0} : draw_->permutation(blocks);
  blocks_drawn_ = 0;
  held_.clear();
  held_begin_ = 0;
}

void EpochOrder::draw_next_block() {
  RUNNER_ASSERT(blocks_drawn_ < blocks_.size(), "an epoch ends with its last block");
  held_begin_ += static_cast<std::int64_t>(held_.size());
  const std::int64_t first = blocks_[blocks_drawn_++] * options_.block;
  held_ = draw_->permutation(std::min(options_.block, options_.size - first));
  for (std::int64_t& sample : held_) sample += first;
}

std::span<const std::int64_t> EpochOrder::read(std::int64_t epoch, std::int64_t begin, std::int64_t count) {
  found_.resize(static_cast<std::size_t>(count));
  if (!options_.shuffle) {
    std::iota(found_.begin(), found_.end(), begin);
    return found_;
  }
  if (epoch != epoch_ || begin < held_begin_) start(epoch);
  for (std::int64_t& sample : found_) {
    while (begin >= held_begin_ + static_cast<std::int64_t>(held_.size())) draw_next_block();
    sample = held_[static_cast<std::size_t>(begin++ - held_begin_)];
  }
  return found_;
}

}  // namespace runner::train
