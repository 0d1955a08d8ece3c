#pragma once

#include <cstddef>
#include <string_view>

namespace runner::words {

/// The texts of schemas/words/*.json; runner/cmake/json_tables.cmake writes them.
extern const std::string_view kTables[];
extern const std::size_t kTableCount;

}  // namespace runner::words
