#pragma once

#include "runner/cli/session.h"

// One line a subcommand; each is defined in the file of its name and adds itself to the command line.

namespace runner::cli {

void add_validate(CLI::App& app, Session& session);
void add_resolve(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_list(CLI::App& app, Session& session);
void add_schema(CLI::App& app, Session& session);
void add_checkpoints(CLI::App& app, Session& session);
void add_merge_weights(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);
void add_config(CLI::App& app, Session& session);
void add_self_test(CLI::App& app, Session& session);
void add_host_store(CLI::App& app, Session& session);
void add_run(CLI::App& app, Session& session);
void add_launch(CLI::App& app, Session& session);
void add_resume(CLI::App& app, Session& session);
void add_plan(CLI::App& app, Session& session);
void add_lr_find(CLI::App& app, Session& session);
void add_eval(CLI::App& app, Session& session);
void add_predict(CLI::App& app, Session& session);
void add_reproduce(CLI::App& app, Session& session);
void add_prove_resume(CLI::App& app, Session& session);
void add_env(CLI::App& app, Session& session);
void add_runs(CLI::App& app, Session& session);
void add_sync(CLI::App& app, Session& session);
void add_profile(CLI::App& app, Session& session);
void add_sweep(CLI::App& app, Session& session);
void add_fork_trainings(CLI::App& app, Session& session);

}  // namespace runner::cli
