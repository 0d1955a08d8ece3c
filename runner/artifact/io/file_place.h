#pragma once

#include <cstdint>
#include <string>

namespace runner::artifact {

/// Where in a file bytes lie.
struct FilePlace {
  std::string path;
  std::int64_t offset = 0;
};

}  // namespace runner::artifact
