#pragma once

#include <memory>

#include "runner/core/diagnostics.h"
#include "runner/engine/texts/generation.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::engine {

/// Engine::open_generator().
std::unique_ptr<TextGenerator> open_generator(const resolve::Recipe& recipe, const GenerateRequest& request,
                                              core::Diagnostics& diagnostics);

}  // namespace runner::engine
