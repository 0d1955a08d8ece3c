#include "runner/review/terminal_plot.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runner/chart/chart.h"
#include "runner/review/curves.h"
#include "tests/runner/review/fixture.h"

using namespace runner::review;
using review_test::kPlain;
using runner::chart::chart_svg;
using runner::chart::Curve;

TEST_CASE("a curve is drawn in characters", "[review][plot]") {
  const double gap = std::numeric_limits<double>::quiet_NaN();
  const Curve falling{"loss", {{0, 4}, {1, 3}, {2, gap}, {3, 1}, {4, 0}}};
  const PlotOptions small{.width = 16, .height = 5, .x_title = "step"};
  CHECK(plot_text({falling}, small, kPlain) ==
        "4 |**\n"
        "  |  **\n"
        "  |\n"
        "  |         **\n"
        "0 |           **\n"
        "   0      step 4\n");
  CHECK(plot_text({falling}, small, {.width = 0, .unicode = true, .color = false}) ==
        "4 \u2524\u2811\u2884\u2840\n"
        "  \u2502  \u2808\u2802\n"
        "  \u2502\n"
        "  \u2502         \u2820\u2840\n"
        "0 \u2524          \u2808\u2812\u2884\n"
        "   0      step 4\n");
  const Curve alone{"loss", {{5, 1}}};
  CHECK(plot_text({alone}, {.width = 14, .height = 3}, {.width = 0, .unicode = true, .color = false}).find("\u28FF") !=
        std::string::npos);
  CHECK(chart_svg({alone}, {}).find("stroke-width=\"6\"") != std::string::npos);
  CHECK(plot_text({{"nothing", {{1, gap}}}}, small, kPlain) == "(no finite values)\n");
  CHECK(plot_text({{"constant", {{1, 2}, {2, 2}}}}, {.width = 14, .height = 3}, kPlain).find("**********") !=
        std::string::npos);
}

TEST_CASE("a curve is drawn whatever its values are", "[review][plot]") {
  const double most = std::numeric_limits<double>::max();
  CHECK(plot_text({{"far apart", {{0, -most}, {1, 0}, {2, most}}}}, {.width = 22, .height = 3}, kPlain) ==
        " 1.7977e+308 |       ***\n"
        "             |   ****\n"
        "-1.7977e+308 |***\n"
        "              0   step 2\n");
  const std::vector<std::vector<std::pair<double, double>>> curves = {
      {{0, most}},
      {{0, -most}},
      {{0, 5e-324}, {1, 1e-323}},
      {{0, -most}, {1, most}},
      {{0, -0.0}},
      {{0, 1e300}},
      {{-5, 1}, {9.2e18, 1 + 1e-15}},
      {{0, std::numeric_limits<double>::infinity()}},
      {{5e-324, 1}, {most, 2}},
  };
  for (const auto& points : curves) {
    for (const bool log : {false, true}) {
      const Curve curve{"it", points};
      CAPTURE(points[0].first, points[0].second, log);
      for (const std::string& picture : {plot_text({curve}, {.width = 40, .log_x = log, .log_y = log}, kPlain),
                                         chart_svg({curve}, {.title = "it", .log_x = log, .log_y = log})}) {
        CHECK(picture.find("nan") == std::string::npos);
        CHECK(picture.find("inf") == std::string::npos);
      }
    }
  }
}

TEST_CASE("axes are logarithmic, and a moving average begins where the values do", "[review][plot]") {
  const Curve falling{"loss", {{0, 5}, {1, 100}, {10, 10}, {100, 1}, {1000, 0}}};
  CHECK(plot_text({falling}, {.width = 17, .height = 3, .x_title = "step", .log_x = true, .log_y = true}, kPlain) ==
        "100 |***\n"
        "    |   ******\n"
        "  1 |         ***\n"
        "     1   step 100\n");
  // By hand, weight 0.5: 4; (0.5 * 2 + 0.5 * 2) / 0.75 = 8 / 3; what is no number does not count.
  std::vector<std::pair<double, double>> points = {{0, 4}, {1, std::nan("")}, {2, 2}};
  smooth(points, 0.5);
  CHECK(points[0].second == 4);
  CHECK(std::isnan(points[1].second));
  CHECK(points[2].second == Approx(8.0 / 3));
}
