#pragma once

namespace runner::core {

/// `0.1.0`
const char* program_version();
/// `Release, GNU 12.2.0`
const char* program_build();
/// 16 hex digits: a hash of this build's sources, independent of their location.
const char* source_hash();

}  // namespace runner::core
