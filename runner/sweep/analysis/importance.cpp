#include "runner/sweep/analysis/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "components/sampler/math/counter_rng.h"
#include "runner/sweep/analysis/regression_tree.h"

namespace runner::sweep {
namespace {

using components::sampler::CounterRng;
using components::sampler::Dimension;

/// A dimension of the forest: one column, or one for each choice, which is 1 where that is taken and 0 elsewhere.
struct Part {
  std::size_t dimension = 0;
  std::size_t first = 0, count = 1;  ///< columns
  bool choices = false;
};

/// What the forest learns from, and the plane that it covers.
struct Encoded {
  std::vector<Part> parts;
  Samples samples;
  TreeLeaf plane;
};

void add_part(const Dimension& dimension, std::size_t index, const std::vector<std::vector<double>>& points,
              Encoded& encoded) {
  Part part{index, encoded.samples.columns.size(), 1, dimension.kind == Dimension::Kind::kChoice};
  if (part.choices) part.count = static_cast<std::size_t>(dimension.choices);
  for (std::size_t choice = 0; choice < part.count; ++choice) {
    std::vector<double> column;
    for (const auto& point : points)
      column.push_back(part.choices ? static_cast<double>(point[index] == static_cast<double>(choice)) : point[index]);
    const auto [least, most] = std::minmax_element(column.begin(), column.end());
    const bool endless = dimension.kind == Dimension::Kind::kNormal;
    encoded.plane.low.push_back(part.choices ? 0 : endless ? *least : dimension.min);
    encoded.plane.high.push_back(part.choices ? 1 : endless ? *most : dimension.max);
    encoded.samples.columns.push_back(std::move(column));
  }
  encoded.parts.push_back(part);
}

/// The share of the plane's width that a leaf has in a column.
double width_share(const TreeLeaf& leaf, const TreeLeaf& plane, std::size_t column) {
  const double whole = plane.high[column] - plane.low[column];
  return whole > 0 ? (leaf.high[column] - leaf.low[column]) / whole : 1;
}

/// The leaves of one tree with the share of the plane that each has; values from their mean over the plane.
struct Tree {
  std::vector<TreeLeaf> leaves;
  std::vector<double> shares;
  double variance = 0;
};

Tree tree_of(const Encoded& encoded, const ImportanceOptions& options, std::int64_t number) {
  CounterRng rng(options.seed, number);
  const std::size_t count = encoded.samples.targets.size();
  std::vector<std::size_t> chosen(count);
  for (std::size_t& one : chosen) one = static_cast<std::size_t>(rng.uniform() * static_cast<double>(count));
  Tree tree;
  tree.leaves = grow_tree(encoded.samples, std::move(chosen), encoded.plane, options.depth_max, rng);
  double mean = 0;
  for (const TreeLeaf& leaf : tree.leaves) {
    double share = 1;
    for (std::size_t i = 0; i < leaf.low.size(); ++i) share *= width_share(leaf, encoded.plane, i);
    tree.shares.push_back(share);
    mean += share * leaf.value;
  }
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    tree.leaves[i].value -= mean;
    tree.variance += tree.shares[i] * tree.leaves[i].value * tree.leaves[i].value;
  }
  return tree;
}

/// Of the tree averaged over all columns but one: the average is a staircase, whose steps are where leaves begin and
/// end.
double variance_along(const Tree& tree, const TreeLeaf& plane, std::size_t column) {
  std::map<double, double> steps;  // where, and by how much
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    const TreeLeaf& leaf = tree.leaves[i];
    const double width = width_share(leaf, plane, column);
    if (width <= 0) continue;
    const double height = leaf.value * tree.shares[i] / width;
    steps[leaf.low[column]] += height;
    steps[leaf.high[column]] -= height;
  }
  const double whole = plane.high[column] - plane.low[column];
  if (!(whole > 0)) return 0;  // all variants have one value there
  double variance = 0, height = 0, from = plane.low[column];
  for (const auto& [at, step] : steps) {
    variance += height * height * (at - from) / whole;
    height += step;
    from = at;
  }
  return variance;
}

/// Of the tree averaged over all columns but those of a choice. A leaf takes one half of such a column or all of it;
/// leaves that take the same are one. Two of them meet where no column keeps them apart.
double variance_among(const Tree& tree, const TreeLeaf& plane, const Part& part) {
  std::map<std::vector<std::pair<double, double>>, double> heights;
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    std::vector<std::pair<double, double>> taken;
    double width = 1;
    for (std::size_t column = part.first; column < part.first + part.count; ++column) {
      taken.emplace_back(tree.leaves[i].low[column], tree.leaves[i].high[column]);
      width *= width_share(tree.leaves[i], plane, column);
    }
    heights[taken] += tree.leaves[i].value * tree.shares[i] / width;
  }
  double variance = 0;
  for (const auto& [a, height_a] : heights) {
    for (const auto& [b, height_b] : heights) {
      double meet = 1;
      for (std::size_t i = 0; i < a.size(); ++i)
        meet *= std::max(std::min(a[i].second, b[i].second) - std::max(a[i].first, b[i].first), 0.0);
      variance += height_a * height_b * meet;
    }
  }
  return std::max(variance, 0.0);
}

/// By part of `encoded`; they add up to 1, or are all 0.
std::vector<double> shares_of(const Encoded& encoded, const ImportanceOptions& options) {
  std::vector<double> shares(encoded.parts.size());
  for (int number = 0; number < options.trees; ++number) {
    const Tree tree = tree_of(encoded, options, number);
    if (!(tree.variance > 0)) continue;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const Part& part = encoded.parts[i];
      const double alone =
          part.choices ? variance_among(tree, encoded.plane, part) : variance_along(tree, encoded.plane, part.first);
      shares[i] += alone / tree.variance;
    }
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum > 0) {
    for (double& share : shares) share /= sum;
  }
  return shares;
}

}  // namespace

std::vector<std::optional<double>> importances(const std::vector<Dimension>& dimensions,
                                               const std::vector<std::vector<double>>& points,
                                               const std::vector<double>& values, const ImportanceOptions& options) {
  std::vector<std::optional<double>> list(dimensions.size());
  Encoded encoded;
  encoded.samples.targets = values;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const bool always =
        std::none_of(points.begin(), points.end(), [i](const auto& point) { return std::isnan(point[i]); });
    if (points.empty() || !always) continue;
    list[i] = 0;
    if (dimensions[i].count() != 1) add_part(dimensions[i], i, points, encoded);
  }
  if (points.size() < 2 || encoded.parts.empty()) return list;
  const std::vector<double> shares = shares_of(encoded, options);
  for (std::size_t i = 0; i < shares.size(); ++i) list[encoded.parts[i].dimension] = shares[i];
  return list;
}

}  // namespace runner::sweep
