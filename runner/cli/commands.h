#pragma once

#include "runner/cli/session.h"

namespace runner::cli {

/// Adds every command: the build finds the files of runner/cli/command and writes this function.
void add_commands(CLI::App& app, Session& session);

/// `run` and `resume`, which a sweep calls in its own process many times a second.
void add_run(CLI::App& app, Session& session);
void add_resume(CLI::App& app, Session& session);

}  // namespace runner::cli
