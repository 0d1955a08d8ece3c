#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/store/run_reader.h"

namespace runner::review {

/// Something that runs were made with, and that is not the same in all of them.
struct DifferingRow {
  std::string key;
  std::vector<std::optional<std::string>> values;  ///< one a run; nothing where it has no such key
};

/// Leaves of a recipe as `optimizer.lr` -> `0.001`, in the order in which they stand there. What a run is called and
/// where it lies is left out: it always differs, and says nothing about the result.
std::vector<std::pair<std::string, std::string>> recipe_leaves(const core::Node& resolved);

/// Keys of the recipes.
std::vector<DifferingRow> differing_keys(const std::vector<store::RunSummary>& runs);
/// What the runs' capsules hold: threads, processor, versions, variables, data files. Nothing of a run without one.
std::vector<DifferingRow> differing_environment(const std::vector<store::RunSummary>& runs);

/// What a run's capsule says about the code in the folder where it was started; null where nothing was recorded.
core::Node git_state_of(const store::RunSummary& run);

}  // namespace runner::review
