#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/result.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"
#include "runner/transfer/optuna_file.h"

namespace runner::transfer {

/// A sweep as Optuna keeps it: each trial with its parameters by path, its curve, and `run`, `variant`, `seed` and
/// `reason` as attributes. A choice without a type in Optuna (a list, a block, paired values) becomes text; a normal
/// distribution, which Optuna lacks, becomes a uniform one over the values present.
OptunaStudy to_optuna(const sweep::Sweep& sweep, sweep::Study& study);

/// A recipe for a study imported without one: it varies the parameters as `vars.NAME`, has the loss of one data set
/// for each objective, and one variant for each ended trial. It is not meant to be trained.
struct StandIn {
  core::Node recipe;
  std::map<std::string, std::string> paths;  ///< `vars.NAME` by Optuna's name; no two have the same
};
StandIn stand_in_for(const OptunaStudy& study, const std::string& output_dir);
/// The paths that got a number because another parameter's name maps to the same path.
std::map<std::string, std::string> numbered_paths(const std::map<std::string, std::string>& paths);

struct ImportOptions {
  std::map<std::string, std::string> paths;  ///< of the parameters whose name is not their path
  bool may_lack = false;                     ///< a trial need not have all: then the parameter plays no part in it
};

/// The trials that a sweep takes over, and why not the others, a line each.
struct Importable {
  std::vector<std::pair<const OptunaTrial*, sweep::Point>> trials;
  std::vector<std::string> left_out;
  std::size_t objectives = 1;
};

/// Those that have ended and lie inside of the sweep's space. Borrows from `from`.
Importable importable(const OptunaStudy& from, const ImportOptions& options, const sweep::RecipeSpace& space);

/// Puts them into a study without any, each as a variant of its own.
void import_trials(const Importable& from, const sweep::RecipeSpace& space, sweep::Study& study);

}  // namespace runner::transfer
