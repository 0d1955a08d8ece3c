#pragma once

#include <string>

#include "runner/registry/registry.h"

namespace runner::registry {

/// One JSON Schema (draft-07, which the YAML language server reads best) of a whole recipe, for completion, hover text
/// and first errors in an editor. It is more lenient than `validate`: a recipe may inherit from `extends` what it
/// lacks, and a
/// `${...}` may stand for any value. Only blocks inside lists, which are never merged, must be complete. Aliases are
/// marked as deprecated. The same text for the same tables on any machine.
std::string editor_schema(const Registry& registry);

}  // namespace runner::registry
