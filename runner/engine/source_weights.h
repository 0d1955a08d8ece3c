#pragma once

#include <string>

#include "components/model/model.h"
#include "runner/core/diagnostics.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::engine {

/// Whether it is a path of weights that no run of roux saved.
bool names_foreign_weights(const std::string& checkpoint);

/// Reads them as `init_from` does, all of them. False, with an error, where they do not fit or lack some.
bool load_foreign(const std::string& path, const resolve::Recipe& recipe, const components::model::Model& model,
                  core::Diagnostics& diagnostics);

}  // namespace runner::engine
