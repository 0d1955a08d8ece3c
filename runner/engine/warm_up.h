#pragma once

namespace runner::engine {

/// Builds and evaluates the smallest of models, so that what LibTorch and its libraries do at their first call is done.
/// Leaves one thread behind, the caller's; draws no random number that anybody sees.
void warm_up();

}  // namespace runner::engine
