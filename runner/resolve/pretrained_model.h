#pragma once

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::resolve {

/// Before a recipe is validated: what `init_from: FOLDER` of Transformers gives where the recipe says nothing, `model`
/// and `loss`, or the `type` of a model that changes some keys alone; and `model.config` of a `transformers` model,
/// read where it names a file, checked and completed. Of a folder with weights in fewer bits it gives `quantization`.
void complete_pretrained(core::Node& recipe, core::Diagnostics& diagnostics);

/// The text of `init_from`, or of its `path`; null when the recipe has none.
const core::Node* source_of(const core::Node& recipe);

}  // namespace runner::resolve
