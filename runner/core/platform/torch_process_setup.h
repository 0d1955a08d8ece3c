#pragma once

namespace runner::core {

/// What has to hold in a process before it loads LibTorch. To be called before there is a second thread: it sets
/// environment variables (only those that nobody has set).
void prepare_for_torch();

}  // namespace runner::core
