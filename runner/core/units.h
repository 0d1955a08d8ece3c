#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace runner::core {

/// A length or an interval as a recipe writes it: an integer counts optimizer steps, text carries its unit.
struct Interval {
  enum class Unit {
    kSteps,     ///< `200`: optimizer steps
    kEpochs,    ///< `2ep`
    kBatches,   ///< `500ba`: micro-batches of a rank
    kTokens,    ///< `1e6tok`
    kSamples,   ///< `5000sp`
    kSeconds,   ///< `90s`, `30min`, `2h`, `1d`
    kDuration,  ///< `0.1dur`: share of the whole training, 0 to 1
  };
  Unit unit = Unit::kSteps;
  double amount = 0;

  bool operator==(const Interval&) const = default;
};

/// Parses `200`, `2ep`, `500ba`, `1e6tok`, `5000sp`, `30min`, `0.1dur`. The Failure names what was read and what is
/// accepted.
Result<Interval> parse_interval(std::string_view text);
std::string to_text(const Interval& interval);

/// `90s`, `1.5h`, `2d`, `30min`, `1h30min`; a bare number is seconds.
Result<double> parse_duration_s(std::string_view text);

/// `10GB`, `500MB`, `5GiB`, `1024`; suffixes as Accelerate's convert_file_size_to_int (decimal KB/MB/GB, binary
/// KiB/MiB/GiB, a final lower-case b means bits). Golden topic `sizes`, kind `parse_size`.
Result<std::int64_t> parse_bytes(std::string_view text);

/// `1.5 GB`, `512 B`; for display.
std::string format_bytes(std::int64_t bytes);
/// `1 h 02 min`, `3.2 s`; for display.
std::string format_duration(double seconds);
/// `12.3 k`, `4.56 M`; for display.
std::string format_count(double count);

}  // namespace runner::core
