#pragma once

namespace runner::core {

/// `0.1.0`
const char* program_version();
/// `Release, GNU 12.2.0`
const char* program_build();
/// 16 hex digits over the sources that this build was made from: the same from the same sources, wherever they lie.
const char* source_hash();

}  // namespace runner::core
