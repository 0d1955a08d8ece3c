#pragma once

#include "runner/cli/session.h"

namespace runner::cli {

// The build finds the files of runner/cli/command and writes these functions (add_command_table in CMake).

/// Adds every command: command/x.cpp defines add_x().
void add_commands(Command app, Session& session);

/// Add the subcommands of a group: command/runs/x.cpp defines add_runs_x().
void add_checkpoints_commands(Command group, Session& session);
void add_config_commands(Command group, Session& session);
void add_data_commands(Command group, Session& session);
void add_examples_commands(Command group, Session& session);
void add_runs_commands(Command group, Session& session);
void add_sweep_commands(Command group, Session& session);
void add_tokenizer_commands(Command group, Session& session);

/// `run` and `resume`, which a sweep calls in its own process many times a second.
void add_run(Command app, Session& session);
void add_resume(Command app, Session& session);

}  // namespace runner::cli
