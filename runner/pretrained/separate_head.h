#pragma once

#include <string>

#include "runner/core/node.h"

namespace runner::pretrained {

/// Whether the head of the model in a folder has a weight of its own, where a checked configuration alone does not
/// tell: Transformers 5 says of every T5 that its head is tied, and writes a head only where that is another tensor.
/// Sets the field of the role `tied` to what the folder's files show.
void settle_separate_head(const std::string& folder, core::Node& config);

}  // namespace runner::pretrained
