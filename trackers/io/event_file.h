#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace trackers {

/// What TensorBoard's event files of one folder hold, in the order in which they were written.
struct EventFile {
  struct Scalar {
    std::string tag;
    std::int64_t step, time_ms;
    double value;
  };
  struct Text {
    std::string tag;
    std::int64_t step, time_ms;
    std::string text;
  };
  std::vector<Scalar> scalars;
  std::vector<Text> texts;
  runner::core::Node hparams = runner::core::Node::mapping();
  std::int64_t left_out = 0;  ///< values of other kinds: images, histograms, ...
  std::string damage;         ///< why the rest of the file could not be read; "" when all of it was
};

/// Adds what a file holds to `all`. A run that was started again says from which step on the earlier points do not
/// count; they are taken away. Failure when it cannot be read or is no event file at all; damage further on is told in
/// `all`, as the last record of a run that was killed is often cut.
runner::core::Result<void> read_event_file(const std::string& path, EventFile& all);

}  // namespace trackers
