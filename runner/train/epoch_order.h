#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace runner::train {

/// The order in which an epoch reads its samples, a pure function of (seed, epoch). Whole permutations equal
/// Accelerate's SeedableRandomSampler: torch.randperm with a generator seeded with seed + epoch. With blocks, blocks of
/// neighbours are permuted, then the samples inside each; only the block that is being read is held, so that data
/// larger than memory does not need memory for its order either.
class EpochOrder {
 public:
  struct Options {
    std::int64_t size = 0;   ///< samples
    std::int64_t block = 0;  ///< samples that stay together; 0: one permutation of all
    bool shuffle = false;    ///< false: as the data set numbers them
    std::uint64_t seed = 0;
  };

  explicit EpochOrder(Options options);
  ~EpochOrder();
  EpochOrder(const EpochOrder&) = delete;
  EpochOrder& operator=(const EpochOrder&) = delete;

  /// Samples [begin, begin + count) of the epoch's order, valid until the next call. Made for reading on: a step back
  /// draws the epoch's blocks again from its beginning.
  std::span<const std::int64_t> read(std::int64_t epoch, std::int64_t begin, std::int64_t count);

 private:
  struct Draw;  ///< an epoch's generator

  void start(std::int64_t epoch);
  void draw_next_block();

  Options options_;
  std::unique_ptr<Draw> draw_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> blocks_;  ///< their order in this epoch
  std::size_t blocks_drawn_ = 0;
  std::vector<std::int64_t> held_;  ///< the block drawn last
  std::int64_t held_begin_ = 0;     ///< where it stands in the order
  std::vector<std::int64_t> found_;
};

}  // namespace runner::train
