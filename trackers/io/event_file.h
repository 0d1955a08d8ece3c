#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace trackers {

/// The content of TensorBoard's event files of one folder, in the order of writing.
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
  std::string damage;         ///< why the rest of the file could not be read; "" if all was
};

/// Adds the content of a file to `all`. A restarted run marks the step from which earlier points do not count; they are
/// removed. Failure when it cannot be read or is not an event file; later damage is reported in `all`, as the last
/// record of a killed run is often truncated.
runner::core::Result<void> read_event_file(const std::string& path, EventFile& all);

}  // namespace trackers
