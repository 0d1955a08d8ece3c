#pragma once

#include <string>

#include "runner/engine/engine.h"
#include "runner/terminal/text.h"

namespace runner::cli {

/// What `roux data stats` prints.
std::string stats_text(const engine::DataStats& stats, const terminal::Terminal& terminal);
std::string stats_json(const engine::DataStats& stats);

}  // namespace runner::cli
