#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace runner::train {

/// How the samples of an epoch are cut into consecutive batches and dealt to ranks in turn: a pure function of the
/// position, so each rank computes its own share without communication.
struct BatchSchedule {
  /// Composition of an epoch.
  struct Options {
    std::int64_t samples = 0;
    std::int64_t micro_batch_size = 1;  ///< samples that a rank gets together
    int ranks = 1;
    bool drop_last = false;  ///< drop the last micro-batch when it is not full
    /// Every rank gets the same number of micro-batches per epoch, as in Accelerate: the last round is filled up with
    /// the epoch's first samples or, with `drop_last`, dropped.
    bool even = false;
    /// The last round of an even epoch is cut into equal parts instead of full micro-batches, as Accelerate's
    /// dispatcher does: only up to a multiple of the rank count is filled up.
    bool cuts_last_round = false;
  };
  /// Of an epoch; the next sample to be read.
  struct Position {
    std::int64_t epoch = 0;
    std::int64_t sample = 0;

    auto operator<=>(const Position&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy sees a 0
  };

  static BatchSchedule of(const Options& options);

  std::int64_t samples_per_epoch = 0;  ///< including repeated samples, without dropped ones
  std::int64_t batch_size =
      1;  ///< samples of one forward pass: a micro-batch, or fewer if that did not fit into memory
  std::int64_t share_size = 1;  ///< dealt out whole
  int rank = 0, ranks = 1;
  bool rank_0_reads = false;                                           ///< the batches of all ranks
  std::int64_t tail_begin = std::numeric_limits<std::int64_t>::max();  ///< from here on shares are of `tail_size`
  std::int64_t tail_size = 1;

  std::int64_t shares_per_epoch() const;
  /// Size of the batch that begins here: the last one of an epoch may be short.
  std::int64_t batch_at(const Position& position) const;
  /// The position after `count` samples: the next epoch begins right after the last sample of an epoch.
  Position after(Position position, std::int64_t count) const;
  /// The rank that owns the batch that begins here; in turn over all epochs, so that no rank gets the short one every
  /// time.
  int rank_at(const Position& position) const;
  /// Whether this rank reads the batch that begins here.
  bool is_mine(const Position& position) const { return (rank_0_reads ? 0 : rank_at(position)) == rank; }
  /// The first batch that this rank reads from here on.
  Position first_mine(Position position) const;

 private:
  std::int64_t share_at(std::int64_t sample) const;  ///< its number in the epoch
};

}  // namespace runner::train
