#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/train/experiment.h"

namespace tests {

struct Built {
  std::unique_ptr<runner::train::Experiment> experiment;  ///< null when the recipe was refused
  std::string messages;
};

/// The experiment of a recipe's text with these `--set`s, in a folder that holds `corpus.txt`, 2 kB.
Built build_recipe(const std::string& recipe, const std::vector<std::string>& sets = {});
/// The same; fails the test when anything was said.
std::unique_ptr<runner::train::Experiment> experiment_of(const std::string& recipe,
                                                         const std::vector<std::string>& sets = {});
/// Whether all weights are the same to the last bit.
bool same_weights(const runner::train::Experiment& a, const runner::train::Experiment& b);

}  // namespace tests
