#pragma once

namespace runner::cli {

/// Installs signal handlers for the rest of a process that trains; programs that it starts do not inherit them. Until
/// the training handles signals itself (train::SignalWatch, launch::Signals), a signal to stop ends the process
/// with 75. SIGPIPE and SIGXFSZ do nothing, so that the call that writes fails instead.
void handle_training_signals();

/// From here on, a signal to stop ends the process with `status`, as the training is over.
void leave_on_signal_with(int status);

}  // namespace runner::cli
