#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "components/data/stream.h"
#include "runner/engine/data_view.h"

namespace runner::engine {

/// Figures of samples by their lengths, in positions without padding. `samples`: how many there are of each length.
LengthFigures length_figures(const std::map<std::int64_t, std::int64_t>& samples);

/// Sums up the padding of batches, of which it sees one sample after the other.
class BatchPadding {
 public:
  /// A batch is as long as its longest sample, rounded up to `multiple`.
  explicit BatchPadding(std::int64_t multiple) : multiple_(multiple) {}

  void add(std::int64_t length);
  std::int64_t samples() const { return samples_; }  ///< of the batch that is open
  /// Ends the batch, unless it is empty.
  void end_batch();
  const PaddingFigures& figures() const { return figures_; }

 private:
  std::int64_t multiple_, samples_ = 0, longest_ = 0, tokens_ = 0;
  PaddingFigures figures_;
};

/// Lengths of the rows that `packing` makes of samples, as data sets do it: each goes into the first of the open rows
/// with room for it; of too many the oldest is closed.
class LengthPacker {
 public:
  /// `close` is given the length of each row that is full, or will not be filled any more.
  LengthPacker(std::int64_t row_length, std::function<void(std::int64_t)> close)
      : row_length_(row_length), close_(std::move(close)) {}

  void add(std::int64_t length);
  /// Closes all rows.
  void flush();

 private:
  std::int64_t row_length_;
  std::function<void(std::int64_t)> close_;
  std::deque<std::int64_t> open_;
};

/// How a recipe's loader batches a stream.
struct StreamBatches {
  components::data::StreamOptions order;
  std::int64_t size = 1;        ///< samples of a batch
  std::int64_t multiple = 1;    ///< what its length is rounded up to
  std::int64_t row_length = 0;  ///< of the rows that `packing` would make; 0: it is not asked for
};

/// Reads one pass of the stream, or what the request asks for of it, in the order of the training, and fills the
/// figures of `stats`. Holds as much of it at once as a training does. RunError for a bad record.
void count_stream(const components::data::Dataset& data, const DataRequest& request, const StreamBatches& batches,
                  DataStats& stats);

}  // namespace runner::engine
