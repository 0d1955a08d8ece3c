#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/text/text.h"

namespace components::data {

using runner::core::counted_large;
using runner::core::with_commas;

/// The bytes as valid UTF-8: each invalid byte becomes U+FFFD.
std::string valid_utf8(std::string_view bytes);

/// A float32 as the double of its shortest spelling: 0.1 and not 0.10000000149.
double as_written(float value);
/// Six significant digits: the accuracy of a number that was shifted and scaled.
double rounded(double value);

/// Entropy in nats of these counts; 0 for no counts.
double entropy_of(std::span<const std::int64_t> counts);

/// What a relative path is relative to, with the current folder; "" for an absolute one.
std::string where_paths_begin(const std::string& path);

/// The hint for a missing file: a similar name in the same folder, and what paths are relative to.
std::string missing_file_hint(const std::string& path);

/// A 64-bit hash of text that is the same on every machine (FNV-1a, finished by splitmix64).
std::uint64_t stable_hash(std::string_view text);

}  // namespace components::data
