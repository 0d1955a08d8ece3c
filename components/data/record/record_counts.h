#pragma once

#include <cstdint>
#include <string>

#include "runner/core/result.h"

namespace components::data {

/// Records that a stream has read, and of them those that make no sample.
struct RecordCounts {
  std::int64_t records = 0;
  std::int64_t dropped = 0;  ///< longer than `max_seq_len`
  std::int64_t skipped = 0;  ///< not valid
};

/// Says that of all the records of `files` files none makes a sample. `set`: `data.train`. `first`: one that was left
/// out, with file, line and reason; "" when none is known.
runner::core::Failure no_usable_record(const std::string& set, std::int64_t files, const RecordCounts& counts,
                                       const std::string& first);

}  // namespace components::data
