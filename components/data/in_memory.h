#pragma once

#include <string>

#include "components/data/data.h"

namespace components::data {

/// Whether a set of this many bytes leaves half of the machine's memory free; else an error at `key`.
bool fits_in_memory(double bytes, const char* key, const std::string& hint, const Inputs& inputs);

}  // namespace components::data
