#pragma once

#include <string>
#include <string_view>

#include "trackers/tracker.h"

namespace trackers {

/// A JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

/// `{"columns":["a"],"data":[[1]]}`.
std::string json_text(const Table& table);

}  // namespace trackers
