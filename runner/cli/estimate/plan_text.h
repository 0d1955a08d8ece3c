#pragma once

#include <string>

#include "runner/engine/engine.h"

namespace runner::cli {

/// What `roux plan` prints: data, blocks, lengths, batch algebra, memory, checkpoints.
std::string plan_text(const std::string& recipe, const engine::Plan& plan);
/// Of it what memory a training takes.
std::string memory_text(const engine::Plan& plan);
std::string plan_json(const engine::Plan& plan);

}  // namespace runner::cli
