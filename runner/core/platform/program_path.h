#pragma once

#include <string>

namespace runner::core {

/// The file of a program. A name with a slash is a path and returned as it is; any other is looked for in the folders
/// of PATH, but not in relative ones: what lies in the current folder is started by its path alone. "" when not found.
std::string find_program(const std::string& name);

}  // namespace runner::core
