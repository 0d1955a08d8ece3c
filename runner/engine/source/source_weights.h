#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/train/experiment/experiment.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::engine {

/// Whether it is a path of weights that no run of roux saved.
bool names_foreign_weights(const std::string& checkpoint);

/// Reads them as `init_from` does, all of them, and adapters from the folders of PEFT that the recipe names. False,
/// with an error, where they do not fit or lack some.
bool load_foreign(const std::string& path, const resolve::Recipe& recipe, const train::Experiment& experiment,
                  core::Diagnostics& diagnostics);

/// The same of a checkpoint of roux, to which the adapter of a folder is added; one that holds adapters is an error.
bool load_below_adapter(const std::string& checkpoint, const resolve::Recipe& recipe,
                        const train::Experiment& experiment, core::Diagnostics& diagnostics);

}  // namespace runner::engine
