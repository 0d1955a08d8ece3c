#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "runner/cli/session.h"
#include "runner/core/error.h"
#include "runner/review/checkpoint/checkpoints.h"
#include "runner/review/checkpoint/keep.h"

// Shared by the subcommands of `roux checkpoints`.

namespace runner::cli {

/// A subcommand that reads the checkpoint folder of one run. `format`: text or json.
void add_folder_command(Command group, Session& session, const char* name, const char* title,
                        void (*action)(const std::string& folder, const std::string& format, Session& session));

/// A subcommand with CHECKPOINT... and --run.
Command add_keep_command(Command group, const char* name, const char* title, review::KeepRequest& request,
                         const std::string& more_examples = "");

void print_answer(const core::Result<std::string>& answer, Session& session);

}  // namespace runner::cli
