#pragma once

#include <cstddef>
#include <string>

#include "runner/core/node.h"

namespace runner::cli {

/// Prints `text` in lines of at most 100 columns, each after `indent` spaces.
void print_wrapped(const std::string& text, std::size_t indent);

/// As in a recipe: `{type: cosine, warmup_ratio: 0.05}`.
std::string flow_text(const core::Node& value);

void print_json(const core::Node& node);

}  // namespace runner::cli
