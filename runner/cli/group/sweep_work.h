#pragma once

#include <cstdint>
#include <string>

#include "runner/cli/session.h"
#include "runner/sweep/studies.h"

namespace runner::cli {

struct SweepWorkFlags {
  std::string name = "last";
  std::int64_t concurrent = 0;  ///< trials at once; 0: the recipe's number
  bool no_wait = false;         ///< leaves while trials of other workers run
};

/// Call first in a command that trains trials: until run_worker() takes signals, one leaves with 75.
void begin_sweep(Session& session);
/// Trains trials of a sweep until it is over or this process is stopped; reports the result.
void run_worker(Session& session, const sweep::Sweep& sweep, sweep::Study& study, const SweepWorkFlags& flags = {});

/// `roux sweep resume` and `roux sweep work`, which are the same.
void add_sweep_worker(Command sweep, Session& session, const char* name, const char* title, const char* footer);

}  // namespace runner::cli
