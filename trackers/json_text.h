#pragma once

#include <string>

#include "trackers/tracker.h"

namespace trackers {

/// `{"columns":["a"],"data":[[1]]}`.
std::string json_text(const Table& table);

}  // namespace trackers
