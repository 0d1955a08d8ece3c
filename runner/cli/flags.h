#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"

// Flags that several commands share.

namespace runner::cli {

/// `--format`, one of `known`.
void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& known);

/// `--json`, the old word for `--format json`: accepted with a notice, not shown in help.
void add_old_json(CLI::App& command, std::string& format, Session& session);

/// `-y, --yes`.
void add_yes(CLI::App& command, bool& yes);

}  // namespace runner::cli
