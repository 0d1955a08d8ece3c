#pragma once

#include <cstddef>
#include <vector>

#include "components/sampler/math/counter_rng.h"

namespace runner::sweep {

/// Samples with their targets.
struct Samples {
  std::vector<std::vector<double>> columns;  ///< one list a column, a number for each sample
  std::vector<double> targets;
};

/// A box in the space of all columns in which a tree predicts one value.
struct TreeLeaf {
  std::vector<double> low, high;  ///< by column
  double value = 0;
};

/// The leaves of a regression tree (CART) of some of the samples, which may name one several times: each split is the
/// one that leaves the least squares, half-way between two values, until the targets are the same or `depth_max` is
/// reached. Ties between splits are broken at random. `root`: the box that the leaves partition.
///
/// Source  Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984
std::vector<TreeLeaf> grow_tree(const Samples& samples, std::vector<std::size_t> chosen, const TreeLeaf& root,
                                int depth_max, components::sampler::CounterRng& rng);

}  // namespace runner::sweep
