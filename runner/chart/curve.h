#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace runner::chart {

struct Curve {
  enum class Mark {
    kLine,
    kDots,  ///< its points alone
    kBars,  ///< from each first point to the one after it, which has the same y
  };
  std::string label = "";                              ///< "" takes no line of the legend
  std::vector<std::pair<double, double>> points = {};  ///< x, y; in the order of x. NaN and infinities leave a gap.
  Mark mark = Mark::kLine;
  std::optional<double> shade = {};  ///< 0 (light) to 1 (dark) in one scale, in place of a colour of its own
};

}  // namespace runner::chart
