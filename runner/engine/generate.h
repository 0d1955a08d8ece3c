#pragma once

#include <optional>

#include "runner/core/diagnostics.h"
#include "runner/engine/generation.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::engine {

/// Engine::generate().
std::optional<GenerationReport> generate_texts(const resolve::Recipe& recipe, const GenerateRequest& request,
                                               GenerationSink& sink, core::Diagnostics& diagnostics);

}  // namespace runner::engine
