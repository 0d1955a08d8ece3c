#include "runner/sweep/preflight.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "components/sampler/draws.h"
#include "components/sampler/walk.h"

namespace runner::sweep {
namespace {

using components::sampler::is_finite;
using components::sampler::make_point;

constexpr std::size_t kCornerAxes = 6;  // 64 corners; further dimensions move with these
constexpr int kDrawn = 64;
constexpr std::uint64_t kPurpose = 1;  // draws of its own: the trials' would tell nothing new of the first of them
constexpr double kLow = 1e-3, kHigh = 1 - 1e-3;  // of what has no end

std::vector<Point> all_points(const RecipeSpace& space) {
  std::vector<Point> points;
  components::sampler::walk_points(space, [&points](const Point& point) {
    points.push_back(point);
    return static_cast<std::int64_t>(points.size()) <= kVariantsMax;
  });
  return points;
}

double end_of(const Dimension& dimension, bool high) {
  if (dimension.kind == Dimension::Kind::kNormal) return dimension.quantile(high ? kHigh : kLow);
  if (dimension.count() > 0) return dimension.nth(high ? dimension.count() - 1 : 0);
  return high ? dimension.max : dimension.min;
}

std::vector<Point> chosen_points(const RecipeSpace& space) {
  const std::vector<Dimension>& dimensions = space.dimensions();
  const std::size_t axes = std::min(dimensions.size(), kCornerAxes);
  std::vector<Point> points;
  for (std::size_t corner = 0; corner < (std::size_t{1} << axes); ++corner) {
    points.push_back(
        make_point(space, [&](std::size_t i) { return end_of(dimensions[i], (corner >> (i % axes)) & 1U); }));
  }
  for (std::size_t varied = 0; varied < dimensions.size(); ++varied) {
    if (dimensions[varied].kind != Dimension::Kind::kChoice) continue;
    for (std::int64_t choice = 0; choice < dimensions[varied].choices; ++choice) {
      points.push_back(make_point(space, [&](std::size_t i) {
        return i == varied ? static_cast<double>(choice) : end_of(dimensions[i], false);
      }));
    }
  }
  components::sampler::Draws draws(0, 0, kPurpose);
  for (int i = 0; i < kDrawn; ++i) points.push_back(components::sampler::draw_point(space, draws));
  std::erase_if(points, [&space](const Point& point) { return !space.allows(point); });
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
  std::string text = one.place.text() + one.message;
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

}  // namespace

Preflight look_ahead(const Sweep& sweep, const std::function<void(const registry::Recipe&, core::Diagnostics&)>& plan,
                     core::Diagnostics& diagnostics) {
  const RecipeSpace& space = sweep.space();
  Preflight result;
  std::vector<Point> points;
  if (is_finite(space)) points = all_points(space);
  result.all = !points.empty() && static_cast<std::int64_t>(points.size()) <= kVariantsMax;
  if (!result.all) points = chosen_points(space);
  if (points.empty()) {
    diagnostics.error(sweep.base().at("sweep").find("constraints")->place(), "no variant meets the constraints");
    return result;
  }
  std::vector<Problem> problems;
  for (const Point& point : points) {
    core::Diagnostics found;
    const auto recipe = sweep.variant(point, found);
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
