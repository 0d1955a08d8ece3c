#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace components::data {

/// The first records of files that data of type jsonl read, at most `count`, as they are written. Nothing when
/// `diagnostics` got errors: no such file, or one of its first lines is no object. RunError as RecordSource.
std::optional<std::vector<runner::core::Node>> first_records(const std::vector<std::string>& paths, std::int64_t count,
                                                             runner::core::Diagnostics& diagnostics);

}  // namespace components::data
