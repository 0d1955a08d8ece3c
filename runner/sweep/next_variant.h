#pragma once

#include <optional>
#include <vector>

#include "components/sampler/sampler.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"

namespace runner::sweep {

/// Whether the next variant depends on running ones.
bool next_variant_waits(const Sweep& sweep, const std::vector<components::sampler::Observation>& observations);

/// The next variant from the sampler or the population; nothing when there is none. Only if next_variant_waits() is
/// false.
std::optional<Variant> next_variant(const Sweep& sweep,
                                    const std::vector<components::sampler::Observation>& observations);

}  // namespace runner::sweep
