#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace runner::core {

/// The candidate that a user most likely meant by `word`: Damerau-Levenshtein distance on lower-cased text with `-`,
/// `_` and `.` alike, at most a third of the length (at least 1), the nearest first, ties by order; else the first one
/// that it abbreviates, `num_procs` for num_processes. "" when nothing is close.
std::string closest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace runner::core
