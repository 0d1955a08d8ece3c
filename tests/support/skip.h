#pragma once

#include <string>

namespace tests {

/// Ends the test case, which this machine cannot run: `reason` says what is missing and what provides it. The program
/// names it, passes, and says at its end how many cases it skipped, which ctest shows as Skipped. With CI in the
/// environment the case fails instead: there, all tests run.
[[noreturn]] void skip(const std::string& reason);

/// The same for what this processor lacks, in CI as well: its machines differ, and no package provides instructions.
[[noreturn]] void skip_on_this_processor(const std::string& reason);

}  // namespace tests
