#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/resolve/recipe.h"
#include "runner/store/run_reader.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"

namespace runner::sweep {

std::string trial_run_name(const Study& study, std::int64_t trial);
/// Of the run that the trial was judged by.
std::string trial_run_dir(const Study& study, const std::string& output_dir, const Trial& trial);
/// The recipe of a trial, under that name. Failure: its first error.
core::Result<resolve::Recipe> trial_recipe(const Sweep& sweep, Study& study, const Trial& trial,
                                           const std::string& run_name);

/// The variants that a variant descends from, the first one first, and itself.
std::vector<std::int64_t> lineage_of(const std::vector<Variant>& variants, std::int64_t variant);

/// Failure: the run has no whole checkpoint of that step.
core::Result<std::string> checkpoint_at(const std::string& run_dir, std::int64_t step);

/// Further arguments of `roux run --new` with the recipe `now`, to resume from a checkpoint made by `before`.
std::vector<std::string> resume_arguments(const std::string& checkpoint, const resolve::Recipe& before,
                                          const resolve::Recipe& now);

/// What a run has trained since its first step.
Spent spent_by(const store::RunSummary& run, std::int64_t first_step);

}  // namespace runner::sweep
