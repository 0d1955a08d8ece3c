#pragma once

#include <map>
#include <string>

#include "runner/core/node.h"

namespace runner::train {

/// The variables of this process that a program of the recipe gets. Without secrets: variables by the sound of their
/// name (artifact::sounds_secret()), addresses with a password, and those that a secret of the recipe refers to.
/// Without this process's place among several: the program is no rank, and may be roux itself.
std::map<std::string, std::string> program_environment(const core::Node& recipe);

}  // namespace runner::train
