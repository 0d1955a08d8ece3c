#pragma once

namespace runner::cli {

/// For the rest of the process, `ulimit -f` makes the call that writes fail, as a full disk does, instead of ending the
/// process by SIGXFSZ without a word. Programs that it starts do not inherit that.
void fail_writes_at_size_limit();

/// Installs signal handlers for the rest of a process that trains; programs that it starts do not inherit them. Until
/// the training handles signals itself (train::SignalWatch, launch::Signals), each of core::end_signals() ends the
/// process with 75. SIGPIPE does nothing, so that the call that writes fails instead; nor does SIGXFSZ.
void handle_training_signals();

/// From here on, a signal to stop ends the process with `status`, as the training is over.
void leave_on_signal_with(int status);

}  // namespace runner::cli
