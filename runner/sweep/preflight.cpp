#include "runner/sweep/preflight.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "components/sampler/math/counter_rng.h"
#include "components/sampler/math/grid_points.h"
#include "runner/core/text/text.h"

namespace runner::sweep {
namespace {

using components::sampler::CounterRng;
using components::sampler::is_finite;
using components::sampler::make_point;

constexpr std::size_t kCornerAxes = 6;  // 64 corners; further dimensions move with these
constexpr int kDrawn = 64;
constexpr std::size_t kShown = 3;
constexpr int kTriesMax = 200;                // to find a variant in which a parameter has a value
constexpr std::size_t kExamples = 16;         // variants in which a variable is tried
constexpr std::int64_t kComparedMax = 8;      // values of a variable
constexpr std::int64_t kWalkedMax = 100'000;  // half a second of constraints
constexpr std::uint64_t kPurpose = 1;  // draws of its own: the trials' would tell nothing new of the first of them
constexpr double kLow = 1e-3, kHigh = 1 - 1e-3;  // of what has no end

/// The first variants in the order of a grid.
struct Walked {
  std::vector<Point> points;
  bool all = false;
  bool sparse = false;  ///< allowed variants are so rare that finding the next one may take arbitrarily long
};

Walked first_points(const RecipeSpace& space) {
  Walked walked;
  if (!is_finite(space)) return walked;
  walked.all = components::sampler::for_each_grid_point(
      space,
      [&walked](const Point& point) {
        walked.points.push_back(point);
        return static_cast<std::int64_t>(walked.points.size()) <= kVariantsMax;
      },
      kWalkedMax);
  walked.sparse = !walked.all && static_cast<std::int64_t>(walked.points.size()) <= kVariantsMax;
  return walked;
}

double end_of(const Dimension& dimension, bool high) {
  if (dimension.kind == Dimension::Kind::kNormal) return dimension.quantile(high ? kHigh : kLow);
  if (dimension.count() > 0) return dimension.nth(high ? dimension.count() - 1 : 0);
  return high ? dimension.max : dimension.min;
}

/// An allowed point in which the dimension is active and has this value, near the corner if possible.
std::optional<Point> point_with(const RecipeSpace& space, std::size_t varied, double value, CounterRng& rng) {
  const std::vector<Dimension>& dimensions = space.dimensions();
  const auto fits = [&](const Point& point) { return !std::isnan(point[varied]) && space.allows(point); };
  Point point = make_point(space, [&](std::size_t i) { return i == varied ? value : end_of(dimensions[i], false); });
  for (int i = 0; i < kTriesMax && !fits(point); ++i) {
    point = make_point(space, [&](std::size_t j) {
      const double drawn = dimensions[j].quantile(rng.uniform());
      return j == varied ? value : drawn;
    });
  }
  if (!fits(point)) return std::nullopt;
  return point;
}

/// Both ends of what has an order, else its choices: evenly spread where they are more than `most`.
std::vector<double> ends_of(const Dimension& dimension, std::int64_t most) {
  if (dimension.kind != Dimension::Kind::kChoice) return {end_of(dimension, false), end_of(dimension, true)};
  const std::int64_t count = std::min(dimension.choices, most);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t choice = i * dimension.choices / count;
    values.push_back(static_cast<double>(choice));
  }
  return values;
}

std::vector<Point> chosen_points(const RecipeSpace& space) {
  const std::vector<Dimension>& dimensions = space.dimensions();
  const std::size_t axes = std::min(dimensions.size(), kCornerAxes);
  std::vector<Point> points;
  for (std::size_t corner = 0; corner < (std::size_t{1} << axes); ++corner) {
    points.push_back(
        make_point(space, [&](std::size_t i) { return end_of(dimensions[i], (corner >> (i % axes)) & 1U); }));
  }
  std::erase_if(points, [&space](const Point& point) { return !space.allows(point); });
  CounterRng rng(0, 0, kPurpose);
  const std::int64_t most = std::max<std::int64_t>(kVariantsMax / static_cast<std::int64_t>(dimensions.size()), 2);
  for (std::size_t varied = 0; varied < dimensions.size(); ++varied) {
    for (const double value : ends_of(dimensions[varied], most)) {
      if (auto point = point_with(space, varied, value, rng)) points.push_back(*std::move(point));
    }
  }
  for (int i = 0; i < kDrawn; ++i) {
    auto point = components::sampler::draw_allowed(space, rng);
    if (!point) break;
    points.push_back(*std::move(point));
  }
  return points;
}

/// The same problem of several variants.
struct Problem {
  core::Diagnostic diagnostic;
  std::string kind;
  std::string first;
  std::int64_t variants = 0;
};

/// What is left of a message without its numbers: 64 draws that are too large are one problem.
std::string kind_of(const core::Diagnostic& one) {
  std::string text = one.location.text() + one.message;
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == 'e'; });
  return text;
}

void add_problems(const core::Diagnostics& found, const std::string& variant, std::vector<Problem>& problems) {
  for (const core::Diagnostic& one : found.all()) {
    if (one.severity != core::Severity::kError) continue;
    const std::string kind = kind_of(one);
    const auto same = std::find_if(problems.begin(), problems.end(),
                                   [&kind](const Problem& problem) { return problem.kind == kind; });
    if (same == problems.end()) {
      problems.push_back({one, kind, variant, 1});
    } else {
      ++same->variants;
    }
  }
}

/// What a variant trains, without the variables that it was written with.
std::string trained(const Sweep& sweep, const Point& point) {
  core::Diagnostics told_by_the_preflight;
  const auto recipe = sweep.variant(point, told_by_the_preflight);
  if (!recipe) return "";
  core::Node root = recipe->resolved();
  root.erase("vars");
  return core::to_json(root, -1);
}

/// Whether another value of the dimension is another training, where the rest is as in `example`.
bool matters(const Sweep& sweep, std::size_t dimension, Point example) {
  std::set<std::string> trainings;
  for (const double value : ends_of(sweep.space().dimensions()[dimension], kComparedMax)) {
    example[dimension] = value;
    trainings.insert(trained(sweep, example));
    if (trainings.size() > 1 || trainings.contains("")) return true;
  }
  return false;
}

/// A variable to which nothing refers would have the same training again and again.
void find_idle_variables(const Sweep& sweep, const std::vector<Point>& points, core::Diagnostics& diagnostics) {
  const std::vector<SpacePart>& parts = sweep.space().parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto is_variable = [](const std::string& path) { return path.starts_with("vars."); };
    if (parts[i].dimension.choices == 1 || !std::all_of(parts[i].paths.begin(), parts[i].paths.end(), is_variable))
      continue;
    std::vector<Point> examples;
    const std::size_t stride = std::max<std::size_t>(points.size() / kExamples, 1);
    for (std::size_t at = 0; at < points.size(); at += stride) examples.push_back(points[at]);
    std::erase_if(examples, [i](const Point& point) { return std::isnan(point[i]); });
    const auto matters_here = [&](const Point& point) { return matters(sweep, i, point); };
    if (examples.empty() || std::any_of(examples.begin(), examples.end(), matters_here)) continue;
    diagnostics.warning(parts[i].location, parts[i].dimension.name + " has no effect on training",
                        "refer to it as in ${" + parts[i].paths.front() + "}");
  }
}

}  // namespace

Preflight check_variants(const Sweep& sweep,
                         const std::function<void(const resolve::Recipe&, core::Diagnostics&)>& plan,
                         core::Diagnostics& diagnostics) {
  const RecipeSpace& space = sweep.space();
  Preflight result;
  Walked walked = first_points(space);
  result.all = walked.all;
  const std::vector<Point> points = walked.all ? std::move(walked.points) : chosen_points(space);
  if (points.empty() || (walked.sparse && sweep.sampler().is_exhaustive())) {
    const std::int64_t looked_at = points.empty() ? components::sampler::kDrawsMax : kWalkedMax;
    diagnostics.error(sweep.base().at("sweep").find("constraints")->location(),
                      walked.all ? "no variant meets the constraints"
                                 : "of " + std::to_string(looked_at) + " variants " +
                                       std::to_string(points.empty() ? 0 : walked.points.size()) +
                                       " meet the constraints: finding the next one may take hours",
                      walked.all ? "" : "derive values from each other with ${vars.NAME} or paired");
    return result;
  }
  const auto wanted = sweep.config().n_trials;
  if (walked.all && wanted && *wanted > static_cast<std::int64_t>(points.size()) && !sweep.sampler().is_exhaustive()) {
    diagnostics.warning(sweep.base().at("sweep.n_trials").location(),
                        "n_trials is " + std::to_string(*wanted) + ", but the space has " +
                            core::counted(static_cast<std::int64_t>(points.size()), "variant", "variants") +
                            ": some repeat, with the same result",
                        "remove n_trials to try each once; use replicates for several seeds");
  }
  // Of a space that is not walked the last ones were drawn, the others are its corners.
  for (std::size_t i = 0; i < std::min(kShown, points.size()); ++i) {
    const std::size_t at = walked.all ? i : points.size() - 1 - i;
    result.examples.push_back(space.text(points[at]));
  }
  space.warn_ineffective(points, diagnostics);
  find_idle_variables(sweep, points, diagnostics);
  std::vector<Problem> problems;
  for (const Point& point : points) {
    core::Diagnostics found;
    const auto recipe = sweep.variant(point, found);
    if (recipe) space.check_settled(*recipe, found);
    if (recipe) plan(*recipe, found);
    add_problems(found, space.text(point), problems);
    ++result.checked;
  }
  for (Problem& problem : problems) {
    core::Diagnostic diagnostic = std::move(problem.diagnostic);
    diagnostic.message += ", in the variant " + problem.first;
    if (problem.variants > 1) diagnostic.message += " and " + std::to_string(problem.variants - 1) + " more";
    diagnostics.add(std::move(diagnostic));
  }
  return result;
}

}  // namespace runner::sweep
