#include "tests/support/paths.h"

namespace tests {

std::string source_dir() { return ROUX_SOURCE_DIR; }

std::string build_dir() { return ROUX_BINARY_DIR; }

}  // namespace tests
