#pragma once

#include <cstddef>
#include <vector>

#include "components/sampler/math/tried.h"

namespace components::sampler {

/// Whether a variant came to an end that can be compared with others.
bool is_judged(const Tried& one);

/// What is judged, from the best to the worst: complete ones, then pruned ones, the furthest first. One objective is
/// compared by its value; several by how many fronts stand before a variant's own, and within it by how alone it is.
std::vector<std::size_t> ranked(const std::vector<Tried>& tried);

/// Whether the one is nowhere worse than the other and somewhere better.
bool dominates(const std::vector<double>& one, const std::vector<double>& other);

/// The front of each: 0 for those that none of the others dominates, 1 for those that only front 0 does, and so on.
///
/// Source  Deb et al., A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II, 2002, section III
std::vector<std::size_t> fronts_of(const std::vector<std::vector<double>>& values);

/// How far the neighbours of each are apart along its front, over all objectives; infinite at the ends.
std::vector<double> room_of(const std::vector<std::vector<double>>& values, const std::vector<std::size_t>& fronts);

}  // namespace components::sampler
