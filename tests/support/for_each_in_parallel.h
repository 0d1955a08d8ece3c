#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tests {

/// Runs `point(i)` for each of `points` on a few threads; each returns "" or what went wrong, as does what it throws.
std::vector<std::string> for_each_in_parallel(const std::vector<int>& points,
                                              const std::function<std::string(int)>& point);

/// A line each.
std::string joined(const std::vector<std::string>& lines);

}  // namespace tests
