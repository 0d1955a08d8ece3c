#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "components/data/data.h"
#include "runner/core/node.h"
#include "runner/train/data/batch_schedule.h"
#include "runner/train/data/epoch_order.h"
#include "runner/train/data/prefetcher.h"

namespace components {
class TensorMap;
}

namespace runner::train {

class SampleStream;

/// Orders a data set and cuts it into micro-batches. The order is a pure function of (seed, epoch), and the position is
/// always exact, so a resumed run sees the samples of an uninterrupted one: what worker threads have prefetched does
/// not count until it is returned. A stream orders itself: its samples are those of an epoch that has no end.
class Loader {
 public:
  struct Options {
    std::int64_t micro_batch_size = 1;
    bool shuffle = false;
    bool drop_last = false;
    std::uint64_t seed = 0;
    std::int64_t num_samples = 0;  ///< EpochOrder::Options
    bool replacement = false;
    bool balance_classes = false;  ///< each class equally often, with replacement
    bool seedable = true;
    bool group_by_length = false;      ///< micro-batches of samples of similar length
    int num_workers = 0;               ///< prefetching threads; 0: the caller reads
    std::int64_t prefetch_factor = 2;  ///< micro-batches that each thread prefetches
    int rank = 0, ranks = 1;           ///< ranks that take micro-batches in turn
    bool rank_0_reads = false;         ///< for all of them
    bool even = false;                 ///< BatchSchedule::Options
    bool cuts_last_round = false;
  };
  using Position = BatchSchedule::Position;

  Loader(const components::data::Dataset& data, Options options);
  ~Loader();

  std::int64_t batches_per_epoch() const { return micro_batches_.shares_per_epoch(); }  ///< of all ranks
  std::int64_t samples_per_epoch() const { return micro_batches_.samples_per_epoch; }   ///< BatchSchedule
  const Position& position() const { return position_; }
  void seek(Position position);

  /// Size of the micro-batch that begins at this sample of an epoch, and of a smaller forward pass: BatchSchedule.
  std::int64_t batch_at(std::int64_t sample) const { return micro_batches_.batch_at({0, sample}); }
  std::int64_t batch_at(std::int64_t sample, std::int64_t size) const { return schedule(size).batch_at({0, sample}); }
  /// Whose micro-batch begins here.
  int owner() const { return schedule(expected_).rank_at(position_); }
  /// Whether this rank reads it: it calls next(), the others skip().
  bool is_mine() const { return schedule(expected_).is_mine(position_); }
  /// Moves on past samples of the epoch without reading them.
  void skip(std::int64_t count) { position_ = micro_batches_.after(position_, count); }

  /// Counts that next() will be called with from now on, if other than micro-batches: determines what is prefetched and
  /// what ranks take in turn. With one rank a wrong guess only costs time.
  void expect(std::int64_t count) { expected_ = count; }
  /// Fills `batch` with the next samples of the epoch and advances; `count` does not cross its end. After the last
  /// sample of an epoch the position is the start of the next one. When a data set throws, the position stays.
  void next(std::int64_t count, components::TensorMap& batch);
  /// What restore_stream() needs beside the position, and what is written into a checkpoint; null where the set is no
  /// stream, and on a rank that reads none of it.
  core::Node stream_state() const;
  /// What became of the records in front of the position. Only of a stream, and on a rank that reads it.
  components::data::Account stream_account() const;
  std::string stream_unread() const;  ///< Stream::unread()
  /// The position is that of the state. RunError when the files have changed.
  void restore_stream(const core::Node& state);
  /// Positions in front of this one are hardly returned to; those behind it cost little time.
  void keep_from(const Position& position);

  /// The samples between two positions, as the data set numbers them, in the order of the epoch.
  std::vector<std::int64_t> samples_between(Position from, Position to) const;

 private:
  EpochOrder::Options order_options() const;
  Prefetcher::Claim claims();
  BatchSchedule schedule(std::int64_t batch_size) const;
  void fetch(std::int64_t count, components::TensorMap& batch);
  void read_ahead(Position start);

  const components::data::Dataset& data_;
  Options options_;
  std::shared_ptr<const std::vector<std::vector<std::int64_t>>> groups_;  ///< EpochOrder::Options
  BatchSchedule micro_batches_;
  Position position_;
  EpochOrder order_;
  std::unique_ptr<SampleStream> stream_;  ///< of a set that is one
  std::int64_t expected_;
  std::unique_ptr<Prefetcher> prefetcher_;  ///< from the first batch on
};

/// The samples of each class that a set in memory has any of, which is read for it.
std::vector<std::vector<std::int64_t>> samples_by_class(const components::data::Dataset& data);

}  // namespace runner::train
