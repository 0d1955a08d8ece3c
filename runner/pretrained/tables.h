#pragma once

#include <cstddef>
#include <string_view>

namespace runner::pretrained {

/// The texts of components/model/types/*.json; runner/cmake/json_tables.cmake writes them.
extern const std::string_view kTables[];
extern const std::size_t kTableCount;

}  // namespace runner::pretrained
