#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/result.h"
#include "runner/sweep/optuna_file.h"
#include "runner/sweep/study.h"
#include "runner/sweep/sweep.h"

namespace runner::sweep {

/// A sweep as Optuna keeps it: each trial with its parameters by path, its curve, and `run`, `variant`, `seed` and
/// `reason` as attributes. A choice that Optuna has no type for (a list, a block, what is paired) is its text; a normal
/// distribution, which it has not, becomes a uniform one over the values that there are.
OptunaStudy to_optuna(const Sweep& sweep, Study& study);

/// For a study that no recipe of ours belongs to: one that varies its parameters as `vars.NAME`, and has as many
/// variants as trials have ended. It trains nothing of worth.
struct StandIn {
  core::Node recipe;
  std::map<std::string, std::string> paths;  ///< `vars.NAME` by Optuna's name
};
StandIn stand_in_for(const OptunaStudy& study, const std::string& output_dir);

struct ImportOptions {
  std::map<std::string, std::string> paths;  ///< of the parameters whose name is not their path
  bool may_lack = false;                     ///< a trial need not have all: then the parameter plays no part in it
};

/// What was taken over, and why the rest was not, a line each.
struct Imported {
  std::int64_t trials = 0;
  std::vector<std::string> left_out;
};

/// Puts the trials that have ended into a study without any. One outside of the sweep's space is left out.
Imported import_trials(const OptunaStudy& from, const ImportOptions& options, const Sweep& sweep, Study& study);

}  // namespace runner::sweep
