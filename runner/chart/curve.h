#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace runner::chart {

struct Curve {
  enum class Mark {
    kLine,
    kDots,  ///< points without a line
    kBars,  ///< from each first point to the next, which has the same y
  };
  std::string label = "";                              ///< "": not in the legend
  std::vector<std::pair<double, double>> points = {};  ///< x, y; sorted by x. NaN and infinity leave a gap.
  Mark mark = Mark::kLine;
  std::optional<double> shade = {};  ///< 0 (light) to 1 (dark), instead of a color
};

}  // namespace runner::chart
