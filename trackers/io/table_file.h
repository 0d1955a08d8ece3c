#pragma once

#include <optional>
#include <string>

#include "trackers/io/tracker_data.h"

namespace trackers {

/// A table as stored by a run, `{"columns": ["a"], "data": [[1], [2]]}`, without its name and step; nothing where the
/// file holds something else.
std::optional<Table> read_table(const std::string& path);

}  // namespace trackers
