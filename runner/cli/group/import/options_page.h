#pragma once

#include <string>

namespace runner::cli {

/// docs/accelerate-options.md: the tables of Accelerate, FSDP, DeepSpeed and the launchers as `roux config import`
/// reads them.
std::string accelerate_page();

}  // namespace runner::cli
