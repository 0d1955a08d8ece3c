#pragma once

#include <string>

#include "components/data/data.h"

namespace components::data {

/// Whether a set that keeps so many bytes leaves half of the machine's memory to the rest; else an error at `key`.
bool fits_in_memory(double bytes, const char* key, const std::string& hint, const Inputs& inputs);

}  // namespace components::data
