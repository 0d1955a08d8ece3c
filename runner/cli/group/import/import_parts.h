#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

// Shared by what `roux config import` makes a recipe of.

namespace runner::cli {

/// Sets what `fsdp`, `fsdp_config` and `deepspeed` of a Trainer's arguments come to. The optimizer and the schedule of
/// DeepSpeed's file take the place of those that are a default there; what is not there is left out, with a warning.
void take_sharding(const core::Node& config, core::Node& recipe, core::Diagnostics& diagnostics);

/// `95%`, to a tenth, of a part of 1.
std::string percent_of(double part);

/// How sets are mixed; without weights they follow one another.
struct SetMixture {
  std::vector<core::Node> weights;
  std::string stopping;
};

/// The sets as one block. Of another number of sets than of weights the mixture does not count.
core::Node joined_sets(std::vector<core::Node> sets, const SetMixture& mixture = {});

}  // namespace runner::cli
