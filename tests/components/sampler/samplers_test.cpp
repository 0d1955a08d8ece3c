#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <vector>

#include "components/sampler/math/grid_points.h"
#include "components/sampler/math/parzen.h"
#include "components/sampler/sampler.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"

using components::sampler::Dimension;
using components::sampler::Observation;
using components::sampler::Point;
using components::sampler::Sampler;
using runner::core::Node;

namespace {

/// Dimensions without conditions, and perhaps one constraint.
class PlainSpace final : public components::sampler::Space {
 public:
  explicit PlainSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {}
  const std::vector<Dimension>& dimensions() const override { return dimensions_; }
  bool is_active(const Point&, std::size_t) const override { return true; }
  bool is_always_active(std::size_t) const override { return true; }
  bool allows(const Point&) const override { return true; }
  runner::core::Result<Point> locate(const Node&) const override { return Point(dimensions_.size(), 1.0); }

 private:
  std::vector<Dimension> dimensions_;
};

Dimension integers(double min, double max, double step = 0, bool log = false) {
  Dimension d;
  d.name = "integers";
  d.kind = Dimension::Kind::kInteger;
  d.min = min;
  d.max = max;
  d.step = step;
  d.log = log;
  return d;
}

Dimension reals(double min, double max, double step = 0, bool log = false) {
  Dimension d = integers(min, max, step, log);
  d.kind = Dimension::Kind::kReal;
  return d;
}

Dimension choices(std::int64_t count) {
  Dimension d;
  d.kind = Dimension::Kind::kChoice;
  d.choices = count;
  return d;
}

std::shared_ptr<Sampler> build(const Node& block, std::vector<Dimension> dimensions, std::uint64_t seed = 3) {
  runner::core::Diagnostics diagnostics;
  const Node checked = runner::registry::validate_component(block, "sampler", "sampler",
                                                            runner::registry::Registry::builtin(), diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return components::sampler::build(checked, {std::make_shared<PlainSpace>(std::move(dimensions)), seed});
}

/// The first `count` variants of a sampler that learns nothing from them.
std::vector<Point> proposed(const Sampler& sampler, std::size_t count) {
  std::vector<Observation> observations;
  std::vector<Point> points;
  while (points.size() < count) {
    const auto point = sampler.propose(observations);
    if (!point) break;
    points.push_back(*point);
    observations.push_back({*point, Observation::State::kComplete, {1.0}});
  }
  return points;
}

}  // namespace

TEST_CASE("a range of more values than can be counted out is drawn from as a whole", "[sampler]") {
  for (const Dimension& d : {integers(0, 4e9), integers(0, 4e9, 2), reals(0, 1, 1e-10)}) {
    CAPTURE(d.max, d.step);
    CHECK(d.count() == 0);
    CHECK(d.has(d.quantile(0.5)));
    CHECK(d.quantile(0.5) > 0.4 * d.max);
    CHECK(d.quantile(0.5) < 0.6 * d.max);
    const PlainSpace space({d});
    const Point tried = {d.quantile(0.25)};
    const components::sampler::Parzen model(space, {0}, {&tried}, 1.0);
    components::sampler::CounterRng rng(3, 0);
    for (int i = 0; i < 20; ++i) {
      Point drawn(1);
      model.draw(rng, drawn);
      CHECK(d.has(drawn[0]));
    }
  }
}

TEST_CASE("every example of a sampler builds", "[sampler]") {
  const auto& registry = runner::registry::Registry::builtin();
  for (const std::string& name : registry.names("sampler")) {
    for (const Node& example : registry.find("sampler", name)->examples) {
      CHECK(build(example, {choices(2), integers(1, 3)}) != nullptr);
    }
  }
}

TEST_CASE("a dimension gives the values that a share of its draws lies below", "[sampler]") {
  struct Case {
    const char* name;
    Dimension dimension;
    double u, value;
  };
  Dimension normal;
  normal.kind = Dimension::Kind::kNormal;
  normal.mu = 2;
  normal.sigma = 3;
  Dimension stepped_normal = normal;
  stepped_normal.step = 0.5;
  Dimension stepped_log_normal = stepped_normal;
  stepped_log_normal.log = true;
  const Case cases[] = {
      {"a choice", choices(4), 0.5, 2},
      {"the last choice", choices(4), 0.9999, 3},
      {"a real", reals(1, 3), 0.25, 1.5},
      {"a logarithm", reals(1e-4, 1e-2, 0, true), 0.5, 1e-3},
      {"steps in the digits of a person", reals(0, 1, 0.1), 0.35, 0.3},
      {"the last step", reals(0, 1, 0.3), 0.999, 0.9},
      {"an integer", integers(2, 6), 0.5, 4},
      {"both ends are drawn as often as the others", integers(1, 2), 0.49, 1},
      {"steps of integers", integers(2, 8, 2), 0.99, 8},
      {"logarithms of integers", integers(1, 100, 0, true), 0.5,
       7},  // exp of the middle of log 0.5 and log 100.5: 7.09
      {"the middle of a normal distribution", normal, 0.5, 2},
      // scipy.stats.norm(2, 3).ppf(0.975) = 7.879891953620162
      {"a normal distribution", normal, 0.975, 7.879891953620162},
      {"steps of a normal distribution", stepped_normal, 0.975, 8},
      {"the first step that has a logarithm", stepped_log_normal, 0.001, 0.5},
      {"large integers keep their last digits", integers(1, 9007199254740991, 3), 0.9999999999999999, 9007199254740991},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(c.dimension.quantile(c.u) == Approx(c.value).epsilon(1e-12)); }
  }
}

TEST_CASE("the inverse of the normal distribution is exact to the last digits", "[sampler]") {
  // scipy.special.ndtri
  CHECK(components::sampler::inverse_normal(1e-10) == Approx(-6.361340902404056).epsilon(1e-13));
  CHECK(components::sampler::inverse_normal(0.01) == Approx(-2.3263478740408408).epsilon(1e-14));
  CHECK(components::sampler::inverse_normal(0.3) == Approx(-0.5244005127080409).epsilon(1e-14));
  CHECK(components::sampler::inverse_normal(0.99) == Approx(2.3263478740408408).epsilon(1e-14));
}

TEST_CASE("a grid tries every combination once, the last dimension first", "[sampler][grid]") {
  const auto sampler = build(Node::string("grid"), {choices(2), integers(4, 6, 2)});
  CHECK(proposed(*sampler, 10) == std::vector<Point>{{0, 4}, {0, 6}, {1, 4}, {1, 6}});
  CHECK(sampler->propose(std::vector<Observation>(2)) == Point{1, 4});  // whatever it was asked before
  CHECK(sampler->propose(std::vector<Observation>(2)) == Point{1, 4});
  CHECK(sampler->propose(std::vector<Observation>(1)) == Point{0, 6});
  CHECK(sampler->propose(std::vector<Observation>(4)) == std::nullopt);
}

TEST_CASE("a sampler says whether it comes to an end, and after how many variants", "[sampler][grid]") {
  const std::vector<Dimension> finite = {integers(1, 3), choices(2)};
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto block = [](const char* type) { return Node::string(type); };
  const auto grid = build(block("grid"), finite);
  CHECK(grid->is_finite());
  CHECK(grid->is_exhaustive());
  CHECK(grid->count(kMost) == 6);
  CHECK(grid->count(6) == 6);
  CHECK(grid->count(5) == std::nullopt);
  CHECK(build(block("grid"), {integers(0, 999'999)})->count(kMost) == std::nullopt);  // takes long to count
  for (const char* type : {"random", "sobol", "tpe"}) {
    CAPTURE(type);
    const auto endless = build(block(type), finite);
    CHECK_FALSE(endless->is_finite());
    CHECK(endless->count(kMost) == std::nullopt);
  }
  const auto listed = [&](Node then) {
    Node list = Node::mapping(), values = Node::mapping();
    values.set("integers", Node::integer(1));
    list.set("type", Node::string("list"));
    list.set("points", Node::sequence({values, values}));
    list.set("then", std::move(then));
    return build(list, finite);
  };
  CHECK(listed({})->is_finite());
  CHECK(listed({})->count(kMost) == 2);
  CHECK(listed(block("grid"))->is_finite());
  CHECK_FALSE(listed(block("random"))->is_finite());
}

TEST_CASE("a grid names every dimension that has no end", "[sampler][grid]") {
  runner::core::Diagnostics diagnostics;
  build(Node::string("grid"), {integers(1, 3), reals(0, 1)})->check(Node::string("grid"), diagnostics);
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].message == "a grid tries all values, but integers has infinitely many");
}

TEST_CASE("unscrambled Sobol points are SciPy's", "[sampler][sobol]") {
  Node block = Node::mapping();
  block.set("type", Node::string("sobol"));
  block.set("scramble", Node::boolean(false));
  const auto points = proposed(*build(block, std::vector<Dimension>(64, reals(0, 1))), 256);
  // scipy.stats.qmc.Sobol(64, scramble=False).random(256)
  CHECK(points[0] == Point(64, 0.0));
  CHECK(points[1] == Point(64, 0.5));
  CHECK(points[3][5] == 0.25);
  CHECK(points[100][17] == 0.7421875);
  CHECK(points[200][40] == 0.20703125);
  CHECK(points[255][63] == 0.33984375);
  double sum = 0;
  for (std::size_t i = 0; i < 256 * 64; ++i) sum += points[i / 64][i % 64] * static_cast<double>(i % 9973 + 1);
  CHECK(sum == 35137830.84765625);
}

TEST_CASE("scrambled Sobol points fill each dimension evenly, in an order of the seed's own", "[sampler][sobol]") {
  const std::vector<Dimension> dimensions(8, reals(0, 1));
  const auto points = proposed(*build(Node::string("sobol"), dimensions, 3), 64);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    std::set<int> stretches;
    for (const Point& point : points) stretches.insert(static_cast<int>(point[i] * 64));
    CHECK(stretches.size() == 64);
  }
  CHECK(points == proposed(*build(Node::string("sobol"), dimensions, 3), 64));
  CHECK(points != proposed(*build(Node::string("sobol"), dimensions, 4), 64));
}

TEST_CASE("TPE finds the bottom of a bowl sooner than random draws do", "[sampler][tpe]") {
  const std::vector<Dimension> dimensions = {reals(-5, 5), reals(1e-4, 1, 0, true), choices(3), integers(1, 9)};
  const auto value = [](const Point& x) {
    return x[0] * x[0] + std::pow(std::log10(x[1]) + 2, 2) + (x[2] == 1 ? 0 : 1) + 0.1 * std::pow(x[3] - 4, 2);
  };
  const auto best = [&](const char* name, std::uint64_t seed) {
    const auto sampler = build(Node::string(name), dimensions, seed);
    std::vector<Observation> observations;
    double least = 1e9;
    for (int i = 0; i < 60; ++i) {
      const Point point = sampler->propose(observations).value();
      observations.push_back({point, Observation::State::kComplete, {value(point)}});
      least = std::min(least, value(point));
    }
    return least;
  };
  std::vector<double> modelled, drawn;
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    modelled.push_back(best("tpe", seed));
    drawn.push_back(best("random", seed));
  }
  std::sort(modelled.begin(), modelled.end());
  std::sort(drawn.begin(), drawn.end());
  CHECK(modelled[4] < 0.25 * drawn[4]);
}

TEST_CASE("what models the numbers finds the bottom of a bowl, whatever fails on the way", "[sampler][cma_es][gp]") {
  const std::vector<Dimension> dimensions = {reals(-5, 5), reals(1e-4, 1, 0, true), choices(3), integers(1, 9)};
  const auto value = [](const Point& x) {
    return x[0] * x[0] + std::pow(std::log10(x[1]) + 2, 2) + (x[2] == 1 ? 0 : 1) + 0.1 * std::pow(x[3] - 4, 2);
  };
  for (const char* name : {"cma_es", "gp"}) {
    CAPTURE(name);
    const auto sampler = build(Node::string(name), dimensions, 3);
    std::vector<Observation> observations;
    double least = 1e9;
    for (int i = 0; i < 80; ++i) {
      const Point point = sampler->propose(observations).value();
      CHECK(sampler->propose(observations) == point);
      for (std::size_t d = 0; d < point.size(); ++d) CHECK(dimensions[d].has(point[d]));
      observations.push_back({point, Observation::State::kComplete, {value(point)}});
      if (point[0] > 3 || point[2] == 0) observations.back() = {point, Observation::State::kFailed, {}};
      if (value(point) > 10 && !observations.back().values.empty())
        observations.back().state = Observation::State::kPruned;
      if (observations.back().state == Observation::State::kComplete) least = std::min(least, value(point));
    }
    CHECK(least < 0.5);
  }
}

TEST_CASE("what learns from several objectives covers more of their front than random draws do",
          "[sampler][nsga2][tpe]") {
  const std::vector<Dimension> dimensions = {reals(0, 1), reals(0, 1), reals(0, 1), choices(3), integers(0, 10)};
  // ZDT1 with a choice and an integer: the front lies where all but the first are 0.
  const auto values = [](const Point& x) {
    const double g = 1 + 3 * (x[1] + x[2] + x[3] / 2 + x[4] / 10);
    return std::vector<double>{x[0], g * (1 - std::sqrt(x[0] / g))};
  };
  /// What lies between the front and the corner (1, 8).
  const auto covered = [&](const std::string& name, std::uint64_t seed) {
    Node block = Node::mapping();
    block.set("type", Node::string(name));
    if (name == "nsga2") block.set("population", Node::integer(20));
    runner::core::Diagnostics diagnostics;
    const Node checked = runner::registry::validate_component(block, "sampler", "sampler",
                                                              runner::registry::Registry::builtin(), diagnostics);
    const auto sampler = components::sampler::build(checked, {std::make_shared<PlainSpace>(dimensions), seed, 2});
    std::vector<Observation> observations;
    std::vector<std::vector<double>> found;
    for (int i = 0; i < 300; ++i) {
      const Point point = sampler->propose(observations).value();
      found.push_back(values(point));
      observations.push_back({point, Observation::State::kComplete, found.back()});
    }
    std::sort(found.begin(), found.end());
    double area = 0, least = 8;
    for (const std::vector<double>& one : found) {
      if (one[1] >= least) continue;
      area += (1 - one[0]) * (least - one[1]);
      least = one[1];
    }
    return area;
  };
  const auto all_covered = [&](const std::string& name) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 5; ++seed) sum += covered(name, seed);
    return sum / 5;
  };
  const double random = all_covered("random");
  CHECK(all_covered("nsga2") > random + 0.2);
  CHECK(all_covered("tpe") > random + 0.2);
}

TEST_CASE("what compares single numbers refuses several objectives", "[sampler][cma_es][gp]") {
  for (const char* name : {"cma_es", "gp"}) {
    runner::core::Diagnostics diagnostics;
    const Node checked = runner::registry::validate_component(Node::string(name), "sampler", "sampler",
                                                              runner::registry::Registry::builtin(), diagnostics);
    CHECK_THROWS_WITH(
        components::sampler::build(checked, {std::make_shared<PlainSpace>(std::vector<Dimension>{reals(0, 1)}), 3, 2}),
        std::string(name) + " has a single objective, but the sweep has 2 objectives");
  }
}

TEST_CASE("TPE is a function of what was tried, and keeps away from what still trains", "[sampler][tpe]") {
  const std::vector<Dimension> dimensions = {reals(0, 1)};
  const auto sampler = build(Node::string("tpe"), dimensions, 3);
  std::vector<Observation> observations;
  for (int i = 0; i < 20; ++i)
    observations.push_back({{0.05 * i}, Observation::State::kComplete, {std::abs(0.05 * i - 0.5)}});
  const Point first = sampler->propose(observations).value();
  CHECK(sampler->propose(observations) == first);
  CHECK(first[0] == Approx(0.5).margin(0.2));
  for (int i = 0; i < 10; ++i) observations.push_back({{0.5}, Observation::State::kOpen, {}});
  CHECK(std::abs(sampler->propose(observations).value()[0] - 0.5) > 0.05);
}

TEST_CASE("a density over values that can be counted adds up to 1", "[sampler][tpe]") {
  const PlainSpace space({choices(3), integers(1, 20), integers(1, 20, 0, true), reals(0, 1, 0.25)});
  const std::vector<Point> points = {{0, 3, 4, 0.5}, {2, 5, 1, 1}, {2, 20, 20, 0}};
  const components::sampler::Parzen density(space, {0, 1, 2, 3}, {&points[0], &points[1], &points[2]}, 1.0);
  double sum = 0;
  components::sampler::for_each_grid_point(space, [&](const Point& point) {
    sum += std::exp(density.log_density(point));
    return true;
  });
  CHECK(sum == Approx(1.0).epsilon(1e-6));
}

TEST_CASE("random variants depend on the seed and their number alone", "[sampler][random]") {
  const std::vector<Dimension> dimensions = {reals(0, 1), reals(1e-5, 1, 0, true), integers(1, 1000)};
  const auto points = proposed(*build(Node::string("random"), dimensions, 3), 50);
  CHECK(points == proposed(*build(Node::string("random"), dimensions, 3), 50));
  CHECK(points != proposed(*build(Node::string("random"), dimensions, 4), 50));
  CHECK(std::set<Point>(points.begin(), points.end()).size() == 50);
  // Whatever the others came to.
  std::vector<Observation> others(7, {{0.5, 0.5, 5}, Observation::State::kFailed, {}});
  CHECK(build(Node::string("random"), dimensions, 3)->propose(others) == points[7]);
}
