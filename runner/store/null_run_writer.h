#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runner/store/run_writer.h"

namespace runner::store {

/// A writer that discards everything: for the other ranks than the one that writes the run.
std::unique_ptr<RunWriter> null_run_writer(const std::string& run_dir, const std::string& run_id, std::int64_t branch);

}  // namespace runner::store
