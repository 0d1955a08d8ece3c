#include "runner/review/compare/significance.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace {

using namespace runner::review;

}  // namespace

// Expected numbers: SciPy 1.17.1; with ties in small groups by going through all ways to deal the values out.
TEST_CASE("Student's t agrees with SciPy", "[cli][statistics]") {
  struct Case {
    double t, degrees, below;
  };
  static constexpr Case cases[] = {
      {0, 3, 0.5},  {2, 3, 0.9303370157205785},  {-1.5, 7.25, 0.08792135806219986}, {40, 2, 0.9996877926639076},
      {1, 1, 0.75}, {5, 200, 0.9999993749009362}};
  for (const Case& c : cases) CHECK(student_t_below(c.t, c.degrees) == Approx(c.below).epsilon(1e-12));
  CHECK(student_t_quantile(0.975, 1) == Approx(12.706204736174694).epsilon(1e-10));
  CHECK(student_t_quantile(0.975, 4) == Approx(2.7764451051977934).epsilon(1e-10));
  CHECK(student_t_quantile(0.975, 9.5) == Approx(2.2441374614922958).epsilon(1e-10));
  CHECK(student_t_quantile(0.975, 1000) == Approx(1.9623390808264083).epsilon(1e-10));
}

TEST_CASE("the tests of two groups give SciPy's numbers", "[cli][statistics]") {
  const std::vector<double> a = {0.51, 0.49, 0.52, 0.5}, b = {0.47, 0.45, 0.48, 0.46, 0.49};
  const Spread spread = spread_of(a);
  CHECK(spread.mean == Approx(0.505).epsilon(1e-12));
  CHECK(spread.deviation == Approx(0.012909944487358068).epsilon(1e-12));
  CHECK(spread.half_width == Approx(0.020542602567605227).epsilon(1e-9));

  const WelchTest welch = welch_test(a, b);
  CHECK(welch.difference == Approx(-0.035).epsilon(1e-10));
  CHECK(welch.degrees == Approx(6.980769230769229).epsilon(1e-9));
  CHECK(welch.p == Approx(0.008156170828391776).epsilon(1e-9));
  CHECK(welch.low == Approx(-0.057652202817535345).epsilon(1e-9));
  CHECK(welch.high == Approx(-0.012347797182464829).epsilon(1e-9));

  struct Case {
    const char* name;
    std::vector<double> a, b;
    double u, p;
    bool exact;
  };
  const Case cases[] = {
      {"no ties: exact", {0.51, 0.49, 0.52, 0.55}, {0.47, 0.45, 0.48, 0.46, 0.50}, 1, 0.031746031746031744, true},
      {"a tie", a, b, 0.5, 3.0 / 126, true},
      {"many ties", {1, 1, 2, 3}, {1, 2, 4, 5, 5}, 15.5, 28.0 / 126, true},
      {"all the same", {1, 1}, {1, 1}, 2, 1, true},
      {"two values, three times each", {1, 1, 1}, {2, 2, 2}, 9, 0.1, true},
      {"two against two cannot be told apart", {1, 2}, {3, 4}, 4, 1.0 / 3, true},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const RankTest test = mann_whitney_test(c.a, c.b);
      CHECK(test.u == c.u);
      CHECK(test.p == Approx(c.p).epsilon(1e-9));
      CHECK(test.exact == c.exact);
    }
  }
}

TEST_CASE("one value has no spread, and equal ones have none", "[cli][statistics]") {
  CHECK(std::isnan(spread_of({1}).half_width));
  CHECK(std::isnan(spread_of({}).mean));
  CHECK(spread_of({2, 2, 2}).half_width == 0);
  CHECK(welch_test({1, 1}, {1, 1}).p == 1);
  // Two values without a spread, as of an accuracy of four samples, say nothing about a third.
  CHECK(std::isnan(welch_test({1, 1}, {2, 2}).p));
}

TEST_CASE("values that diverged say nothing, and spoil nothing that is said of others", "[cli][statistics]") {
  const std::vector<double> steady = {0.5, 0.5, 0.5, 0.5}, higher = {0.6, 0.6, 0.6000001}, wide = {1.79e308, -1.79e308};
  CHECK(std::isfinite(spread_of({1e200, 3e200}).deviation));
  CHECK(spread_of({1e200, 3e200}).deviation == Approx(std::sqrt(2.0) * 1e200));
  CHECK(welch_test({1e200, 3e200}, {1e200, 3e200}).p == Approx(1));
  CHECK(welch_test(steady, wide).p == 1);
  const std::vector<double> corrected = holm({welch_test(steady, higher).p, welch_test(steady, wide).p});
  CHECK(corrected[0] < 1e-9);
  CHECK(corrected[1] == 1);
  // 0.1 three times adds up to 0.30000000000000004.
  CHECK(spread_of({0.1, 0.1, 0.1}).deviation == 0);
  CHECK(welch_test({0.1, 0.1, 0.1}, {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}).p == 1);
}

TEST_CASE("several tests together are corrected for multiple comparisons", "[cli][statistics]") {
  // By hand: 0.01 x 3, then 0.02 x 2, then 0.04 x 1, none smaller than the one before.
  const std::vector<double> corrected = holm({0.04, 0.01, 0.02});
  CHECK(corrected[0] == Approx(0.04));
  CHECK(corrected[1] == Approx(0.03));
  CHECK(corrected[2] == Approx(0.04));
}
