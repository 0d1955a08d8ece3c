#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace runner::core {

/// The candidates that a user most likely meant by `word`, as near as each other, in their order: the nearest by
/// Damerau-Levenshtein distance on lower-cased text with `-`, `_` and `.` alike, at most a third of the length (at
/// least 1); else those that it abbreviates, `num_procs` for num_processes. Empty when nothing is close.
std::vector<std::string> all_closest(std::string_view word, const std::vector<std::string>& candidates);

/// The only one of all_closest(); "" when there are none or several, among which to choose would be a guess.
std::string closest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace runner::core
