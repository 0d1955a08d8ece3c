#pragma once

#include <memory>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/recipe/read.h"

namespace runner::recipe {

/// Applies one `--set` to the tree: `a.b[2].c=value`, `+a.list=value`, `~a.key`. A key that is not there yet is made
/// (the schema judges it later), a list item is not. What cannot be done is told at `shown_as`, the flag or the
/// variable that asked for it.
void apply_set(core::Node& root, const std::string& text, const std::string& shown_as, const Limits& limits,
               core::Diagnostics& diagnostics);

/// `path=value` with a value that has been read; it is told at the value's place what cannot be done.
void set_value(core::Node& root, const std::string& path, core::Node value, core::Diagnostics& diagnostics);

}  // namespace runner::recipe
