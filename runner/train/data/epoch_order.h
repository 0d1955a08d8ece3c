#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace runner::train {

/// The order in which an epoch reads its samples, a pure function of (seed, epoch). Whole permutations equal
/// Accelerate's SeedableRandomSampler: torch.randperm with a generator seeded with seed + epoch. With blocks, blocks of
/// neighbours are permuted, then the samples inside each; only the block that is being read is held, so that data
/// larger than memory does not need memory for its order either. An epoch that is longer than the data goes through it
/// again, in another order, as torch's RandomSampler does.
class EpochOrder {
 public:
  struct Options {
    std::int64_t size = 0;   ///< samples
    std::int64_t block = 0;  ///< samples that stay together; 0: one permutation of all
    bool shuffle = false;    ///< false: as the data set numbers them
    std::uint64_t seed = 0;
    std::int64_t num_samples = 0;  ///< of an epoch; 0: as many as there are
    bool replacement = false;      ///< each sample is drawn from all, so that some come twice and some not at all
    /// False: the seeds of the epochs are drawn from a generator with `seed`, as torch's DataLoader and RandomSampler
    /// draw them from the default generator where nothing else does.
    bool seedable = true;
    /// With `seedable` false: every epoch goes on drawing from one generator whose seed is the first one drawn, as the
    /// generator that Accelerate gives a sampler to keep several processes alike.
    bool one_generator = false;
    std::int64_t group = 0;  ///< > 0: batches of so many samples are of about the same length
    std::function<std::int64_t(std::int64_t)> length_of = {};  ///< of a sample, where `group` asks for it
  };

  /// Samples whose neighbours in length are looked for together, in batches: enough that the lengths in a batch are
  /// about the same, few enough that an epoch is still another one each time.
  static constexpr std::int64_t kBatchesGrouped = 50;

  /// Samples of an epoch.
  static std::int64_t length(const Options& options) {
    return options.num_samples > 0 ? options.num_samples : options.size;
  }

  explicit EpochOrder(Options options);
  ~EpochOrder();
  EpochOrder(const EpochOrder&) = delete;
  EpochOrder& operator=(const EpochOrder&) = delete;

  /// Samples [begin, begin + count) of the epoch's order, valid until the next call; behind the last one comes the
  /// first one again. Made for reading on: a step back draws the epoch's blocks again from its beginning.
  std::span<const std::int64_t> read(std::int64_t epoch, std::int64_t begin, std::int64_t count);

 private:
  struct Draw;  ///< an epoch's generator

  std::int64_t sample_at(std::int64_t epoch, std::int64_t place);
  void start(std::int64_t epoch);
  void begin();  ///< of an epoch: nothing of it is drawn yet
  std::uint64_t seed_of(std::int64_t epoch) const;
  void draw_blocks();
  void draw_next_block();
  void group_by_length();

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
