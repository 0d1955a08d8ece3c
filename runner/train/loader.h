#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "components/data/data.h"
#include "runner/train/epoch_order.h"

namespace components {
class TensorMap;
}

namespace runner::train {

/// Puts a data set in order and cuts it into micro-batches. The order is a pure function of (seed, epoch), and the
/// position is exact at any point, so a resume sees the samples that an undisturbed run would have seen.
class Loader {
 public:
  struct Options {
    std::int64_t micro_batch_size = 1;
    bool shuffle = false;
    bool drop_last = false;
    std::uint64_t seed = 0;
  };
  struct Position {
    std::int64_t epoch = 0;
    std::int64_t sample = 0;  ///< of the epoch's order; the next one to be read

    auto operator<=>(const Position&) const = default;
  };

  Loader(const components::data::Dataset& data, Options options);

  std::int64_t batches_per_epoch() const;
  std::int64_t samples_per_epoch() const;  ///< without what drop_last leaves out
  const Position& position() const { return position_; }
  void seek(Position position);

  /// Size of the micro-batch that begins at this sample of an epoch: the last one may be short.
  std::int64_t batch_at(std::int64_t sample) const;
  /// Fills `batch` with the next samples of the epoch and moves on; `count` does not reach beyond its end. After the
  /// last sample of an epoch the position is the start of the next one.
  void next(std::int64_t count, components::TensorMap& batch);
  /// The samples between two positions, as the data set numbers them, in the order of the epoch.
  std::vector<std::int64_t> samples_between(Position from, Position to) const;

 private:
  EpochOrder::Options order_options() const;

  const components::data::Dataset& data_;
  Options options_;
  Position position_;
  EpochOrder order_;
};

}  // namespace runner::train
