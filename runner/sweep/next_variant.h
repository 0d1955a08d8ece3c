#pragma once

#include <optional>
#include <vector>

#include "components/sampler/sampler.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"

namespace runner::sweep {

/// Whether nobody can say yet what comes next: some that run have to end first.
bool next_variant_waits(const Sweep& sweep, const std::vector<components::sampler::Tried>& tried);

/// The variant after those that were tried, of the sampler or of the population; nothing when there is none. Only where
/// next_variant_waits() is false.
std::optional<Variant> next_variant(const Sweep& sweep, const std::vector<components::sampler::Tried>& tried);

}  // namespace runner::sweep
