#pragma once

#include <string>

namespace tests {

/// The source tree. It and the build folder are compiled into paths.cpp alone, so that every other file of the tests is
/// the same in each checkout and comes from the compiler cache.
std::string source_dir();

/// The build folder, with what was built in its bin/ and lib/.
std::string build_dir();

}  // namespace tests
