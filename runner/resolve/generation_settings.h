#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::resolve {

/// Before a recipe is validated: where it has a section `generation`, what `init_from: FOLDER` of Transformers says in
/// generation_config.json is filled in where the section says nothing; without that file, the end tokens of
/// config.json. Each value has its place in the file. Settings of the file that change texts and that roux does not
/// have are warned of; others, and those that are null, are ignored.
void complete_generation(core::Node& recipe, core::Diagnostics& diagnostics);

/// The settings that are warned of.
std::vector<std::string> settings_without_effect();

}  // namespace runner::resolve
