#pragma once

namespace runner::cli {

/// For the rest of a process that trains, its own handlers of signals; they reach no program that it starts. A signal
/// that asks for the end, before train::SignalWatch takes it, leaves with 75 at once. What reads our output may go away
/// (SIGPIPE), and a file may meet `ulimit -f` (SIGXFSZ): then the call that wrote says so.
void handle_training_signals();

/// From here on, a signal that asks for the end leaves with `status`: the training is over.
void leave_on_signal_with(int status);

}  // namespace runner::cli
