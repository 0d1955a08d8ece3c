#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace runner::train {

/// The order in which an epoch reads its samples, a pure function of (seed, epoch). Whole permutations equal
/// Accelerate's SeedableRandomSampler: torch.randperm with a generator seeded with seed + epoch. With blocks, blocks of
/// neighbours are permuted, then the samples inside each; only the current block's order is in memory, so data larger
/// than memory work, too. An epoch longer than the data repeats them in another order, as torch's RandomSampler does.
class EpochOrder {
 public:
  struct Options {
    std::int64_t size = 0;   ///< samples
    std::int64_t block = 0;  ///< samples that stay together; 0: one permutation of all
    bool shuffle = false;    ///< false: the data set's own order
    std::uint64_t seed = 0;
    std::int64_t num_samples = 0;  ///< of an epoch; 0: all
    bool replacement = false;      ///< draw with replacement
    /// Draws with replacement, from each of these groups of samples equally often; none of them is empty. Null: none.
    std::shared_ptr<const std::vector<std::vector<std::int64_t>>> groups = nullptr;
    /// False: the seeds of the epochs are drawn from a generator with `seed`, as torch's DataLoader and RandomSampler
    /// draw them from an otherwise unused default generator.
    bool seedable = true;
    /// With `seedable` false: all epochs draw from one generator, seeded with the first number drawn, like the
    /// generator that Accelerate gives a sampler to synchronize processes.
    bool one_generator = false;
    std::int64_t group = 0;  ///< > 0: batches of this many samples have similar lengths
    std::function<std::int64_t(std::int64_t)> length_of = {};  ///< length of a sample, used when `group` > 0
  };

  /// Batches in a chunk that is sorted by length: enough for similar lengths within a batch, few enough for every epoch
  /// to differ.
  static constexpr std::int64_t kBatchesGrouped = 50;

  /// Samples of an epoch.
  static std::int64_t length(const Options& options) {
    return options.num_samples > 0 ? options.num_samples : options.size;
  }

  explicit EpochOrder(Options options);
  ~EpochOrder();
  EpochOrder(const EpochOrder&) = delete;
  EpochOrder& operator=(const EpochOrder&) = delete;

  /// Samples [begin, begin + count) of the epoch's order, valid until the next call; wraps around after the last one.
  /// Sequential reads are cheap: a step back draws the epoch's blocks from its beginning.
  std::span<const std::int64_t> read(std::int64_t epoch, std::int64_t begin, std::int64_t count);

 private:
  struct Draw;  ///< an epoch's generator

  std::int64_t sample_at(std::int64_t epoch, std::int64_t position);
  void start(std::int64_t epoch);
  void begin();  ///< state at the start of an epoch
  std::uint64_t seed_of(std::int64_t epoch) const;
  void draw_blocks();
  void draw_next_block();
  void group_by_length();

  Options options_;
  std::unique_ptr<Draw> draw_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> blocks_;  ///< their order in this epoch
  std::size_t blocks_drawn_ = 0;
  std::vector<std::int64_t> held_;  ///< the latest block drawn
  std::int64_t held_begin_ = 0;     ///< its position in the order
  std::vector<std::int64_t> found_;
};

}  // namespace runner::train
