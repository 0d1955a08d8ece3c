#pragma once

#include <array>
#include <string_view>

#include "generated/base/pretrained_tables.h"

namespace runner::pretrained {

/// The texts of components/model/names/*.json; runner/cmake/pretrained.cmake writes them.
extern const std::array<std::string_view, kTableCount> kTables;

}  // namespace runner::pretrained
