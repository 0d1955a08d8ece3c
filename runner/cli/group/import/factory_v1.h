#pragma once

#include "runner/cli/group/import/trainer_method.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/words/reader.h"

// LLaMA-Factory's version 1, whose arguments have names of their own.

namespace runner::cli {

/// Whether arguments have a word of version 1 alone.
bool is_factory_v1(const core::Node& config);
/// What `train_dataset` names, a mapping of sets as a file of version 1 has them; null without one. A warning where
/// the file is not here.
core::Node factory_v1_sets(const core::Node& config, core::Diagnostics& diagnostics);
/// Whether one of them has pairs.
bool has_pairs(const core::Node& sets);

// Rules, as words::Reader calls them:

void take_factory_v1_data(words::Reader& reader, const TrainerMethod& method);
/// AdamW as PyTorch has it, or Muon.
void take_factory_v1_optimizer(words::Reader& reader);

}  // namespace runner::cli
