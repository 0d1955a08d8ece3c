#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::resolve {

/// Before a recipe is validated: what the folder of Transformers that it begins from says in generation_config.json is
/// filled in where the section says nothing; without that file, the end tokens of config.json. Each value has its place
/// in the file. Settings of the file that change texts and that roux does not have are warned of; others, and those
/// that are null, are ignored.
///
/// generation  the recipe's section; null: it has none
/// source      source_of() the recipe; null: it begins from nothing
void complete_generation(core::Node* generation, const core::Node* source, core::Diagnostics& diagnostics);

/// The settings that are warned of.
std::vector<std::string> settings_without_effect();

}  // namespace runner::resolve
