#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/cli/group/import/launch/launcher.h"

namespace runner::cli {

/// The words of the torchrun that `llamafactory-cli train` starts by the variables before it (FORCE_TORCHRUN,
/// NPROC_PER_NODE, NNODES, ...), without its script. Empty where none of them asks for it.
std::vector<ShellWord> factory_launcher(const std::map<std::string, ShellWord>& environment);

}  // namespace runner::cli
