#pragma once

#include <string_view>

namespace runner::core {

/// Writes to standard output or error (1 or 2), which a reader that stopped reading (a full pipe, Ctrl-S) may block.
/// Waits for the reader until this process is asked to end (end_signals.h), and from then on for one second in all;
/// then what would block is dropped. False where text was lost, with `errno`. A signal handler may call it.
bool write_to_reader(int descriptor, std::string_view text);

/// From here on what the program prints by stdio to them is dropped rather than waited for, too, even what it is just
/// writing. A signal handler may call it.
void never_wait_for_reader();

}  // namespace runner::core
