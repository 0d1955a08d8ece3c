#pragma once

#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/engine/engine.h"

namespace runner::cli {

/// The fields that are read, or those that are not, each with the number of records that have it so:
/// `messages (40), messages[].content (40)`; `none` where there are none. Those behind the first ones are counted.
std::string fields_text(const std::vector<engine::FieldFigures>& fields, bool read);

/// A list of mappings with `name`, `records` and `read`.
core::Node fields_node(const std::vector<engine::FieldFigures>& fields);

}  // namespace runner::cli
