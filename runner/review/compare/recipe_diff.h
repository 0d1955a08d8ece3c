#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/store/run_reader.h"

namespace runner::review {

/// A setting that differs between runs.
struct DifferingRow {
  std::string key;
  std::vector<std::optional<std::string>> values;  ///< one per run; nothing if it has no such key
};

/// Leaves of a recipe as `optimizer.lr` -> `0.001`, in their order. Without names and folders, which always differ and
/// do not affect results.
std::vector<std::pair<std::string, std::string>> flat_params(const core::Node& resolved);

/// Keys that differ between the recipes.
std::vector<DifferingRow> differing_keys(const std::vector<store::RunSummary>& runs);
/// What differs between the provenances: threads, CPU, versions, variables, data files. Skips runs without one.
std::vector<DifferingRow> differing_environment(const std::vector<store::RunSummary>& runs);

/// The git state in a run's provenance; null if it was not recorded.
core::Node git_state_of(const store::RunSummary& run);

}  // namespace runner::review
