#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runner/core/node.h"
#include "runner/core/units.h"

namespace runner::train {

/// Progress so far. Saved at optimizer-step boundaries; every event schedule is a pure function of two of these, so a
/// resumed run fires the same events at the same steps.
struct Progress {
  std::int64_t step = 0;  ///< optimizer steps
  std::int64_t micro_batches = 0;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;         ///< without padding
  std::int64_t target_tokens = 0;  ///< those of `tokens` that are learnt, where samples differ in length; 0 elsewhere
  double epoch = 0;                ///< including the fraction
  double seconds = 0;              ///< of training, across resumes

  core::Node to_node() const;
  static Progress from_node(const core::Node& node);
};

/// Lengths that end the training; the first one reached counts.
struct Limits {
  std::optional<std::int64_t> max_steps = {};
  std::optional<double> max_epochs = {}, max_tokens = {}, max_time_s = {};

  /// Empty until one is reached; then its name and value, `max_steps 2000`.
  std::string reached(const Progress& progress) const;
};

/// Sizes for converting lengths into optimizer steps, exactly: the last micro-batch of an epoch may be smaller than the
/// others, and its last window may have fewer micro-batches or reach into the next epoch.
struct EpochShape {
  std::int64_t samples = 1;  ///< of an epoch, without samples dropped by drop_last
  std::int64_t micro_batch_size = 1;
  std::int64_t accumulation_steps = 1;
  bool sync_with_dataloader = true;  ///< the end of an epoch ends a window
  std::int64_t tokens_per_sample = 0;

  std::int64_t batches() const;          ///< micro-batches of an epoch
  std::int64_t steps_per_epoch() const;  ///< at least 1; of the first epoch, where windows reach into the next one
  std::int64_t samples_after(std::int64_t steps) const;
  /// Steps after which at least this many samples have been seen.
  std::int64_t steps_until(std::int64_t samples) const;
};

/// Optimizer steps of the whole training; nothing when only max_time limits it.
std::optional<std::int64_t> total_steps(const Limits& limits, const EpochShape& shape);

/// True when `interval` elapsed again between two points. `total` is used for `dur`; 0 when unknown.
bool due(const core::Interval& interval, const Progress& before, const Progress& after, std::int64_t total);

}  // namespace runner::train
