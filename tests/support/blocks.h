#pragma once

#include <string>

#include "runner/core/node.h"

namespace tests {

/// A component's block from recipe text (`{type: adamw, lr: 1e-3}`), validated and with its defaults. Fails the test
/// with the rendered diagnostics when the text is wrong.
runner::core::Node block(const std::string& kind, const std::string& text);

}  // namespace tests
