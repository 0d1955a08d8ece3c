#pragma once

#include <string>

namespace trackers {

/// A field of a table as RFC 4180 writes it: in quotes where it holds a quote, the separator or the end of a line.
std::string csv_field(const std::string& text, char separator);

}  // namespace trackers
