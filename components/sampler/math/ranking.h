#pragma once

#include <cstddef>
#include <vector>

#include "components/sampler/math/observation.h"

namespace components::sampler {

/// Whether a variant ended with a comparable result.
bool has_result(const Observation& one);

/// Variants with a result, from best to worst: complete ones, then pruned ones, the furthest first. One objective is
/// compared by value; several by non-domination rank, then by crowding distance.
std::vector<std::size_t> ranked(const std::vector<Observation>& observations);

/// Whether the one dominates the other: nowhere worse and somewhere better.
bool dominates(const std::vector<double>& one, const std::vector<double>& other);

/// The front of each: 0 for those that none of the others dominates, 1 for those that only front 0 does, and so on.
///
/// Source  Deb et al., A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II, 2002, section III
std::vector<std::size_t> non_dominated_fronts(const std::vector<std::vector<double>>& values);

/// The crowding distance of each within its front; infinite at the ends.
std::vector<double> crowding_distances(const std::vector<std::vector<double>>& values,
                                       const std::vector<std::size_t>& fronts);

}  // namespace components::sampler
