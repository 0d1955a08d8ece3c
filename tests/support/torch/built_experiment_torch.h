#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/train/experiment/experiment.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace tests {

/// The experiment of a recipe's text with these `--set`s, in a folder that holds `corpus.txt`, 2 kB.
Built build_recipe(const std::string& recipe, const std::vector<std::string>& sets = {});
/// The same; fails the test when anything was said.
std::unique_ptr<runner::train::Experiment> experiment_of(const std::string& recipe,
                                                         const std::vector<std::string>& sets = {});

}  // namespace tests
