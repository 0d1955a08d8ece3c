#pragma once

namespace runner::engine {

/// Builds and evaluates a tiny model, to run the one-time initialization of LibTorch and its libraries. Leaves only the
/// caller's thread; does not affect any visible random numbers.
void warm_up();

}  // namespace runner::engine
