#pragma once

namespace runner::core {

/// Prepares a process before it loads LibTorch. Call before there is a second thread: it sets environment variables
/// (only unset ones).
void prepare_for_torch();

}  // namespace runner::core
