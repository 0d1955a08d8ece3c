#pragma once

#include <optional>
#include <string>

namespace runner::core {

/// The file of a program. A name with a slash is a path and returned as it is; any other is looked for in the folders
/// of PATH, but not in relative ones: what lies in the current folder is started by its path alone. "" when not found.
std::string find_program(const std::string& name);

inline constexpr const char* kProgramsVariable = "ROUX_COMMANDS";

/// Whether programs that a recipe names may start: yes unless kProgramsVariable is off, 0, false or no, in any case.
/// Nothing for another value, which is refused where a recipe is read.
std::optional<bool> starts_programs();

}  // namespace runner::core
