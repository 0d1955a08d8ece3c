#pragma once

#include <memory>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/recipe/read.h"

namespace runner::recipe {

/// Applies one `--set` to the tree: `a.b[2].c=value`, `+a.list=value`, `~a.key`. Creates missing keys (the schema
/// checks them later), but not list items. Reports errors at `shown_as`, the flag or variable.
void apply_set(core::Node& root, const std::string& text, const std::string& shown_as, const Limits& limits,
               core::Diagnostics& diagnostics);

/// `path=value` with a parsed value; reports errors at the value's location.
void set_value(core::Node& root, const std::string& path, core::Node value, core::Diagnostics& diagnostics);

}  // namespace runner::recipe
