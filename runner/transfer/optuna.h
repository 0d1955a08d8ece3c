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
/// `reason` as attributes. A choice that Optuna has no type for (a list, a block, what is paired) is its text; a normal
/// distribution, which it has not, becomes a uniform one over the values that there are.
OptunaStudy to_optuna(const sweep::Sweep& sweep, sweep::Study& study);

/// For a study that no recipe of ours belongs to: one that varies its parameters as `vars.NAME`, compares by the loss
/// of a data set for each objective, and has as many variants as trials have ended. It trains nothing of worth.
struct StandIn {
  core::Node recipe;
  std::map<std::string, std::string> paths;  ///< `vars.NAME` by Optuna's name; no two have the same
};
StandIn stand_in_for(const OptunaStudy& study, const std::string& output_dir);
/// Those of its paths that are numbered, since another parameter's name comes to the same.
std::map<std::string, std::string> told_apart(const std::map<std::string, std::string>& paths);

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
