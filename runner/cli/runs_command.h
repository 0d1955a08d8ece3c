#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/review/runs.h"

// What the subcommands of `roux runs` have in common on the command line.

namespace runner::cli {

/// The session's folder of runs, the system's clock, standard output.
review::RunsContext runs_context(const Session& session);

inline constexpr const char* kRunText = "A run: its id or the beginning of it, its name, its folder, or `last`";

template <typename Request>
using RunsAnswer = std::optional<std::string> (*)(const review::RunsContext&, const Request&, core::Diagnostics&);

/// Makes `request` what the subcommand was called with, and `answer` what it does.
template <typename Request>
void on_runs_call(CLI::App& command, Session& session, std::shared_ptr<Request> request, RunsAnswer<Request> answer) {
  command.fallthrough();
  command.callback([request, answer, &session] {
    session.command = [request, answer, &session] {
      core::Diagnostics diagnostics;
      const auto text = answer(runs_context(session), *request, diagnostics);
      session.show(diagnostics);
      if (text) std::fwrite(text->data(), 1, text->size(), stdout);
      if (diagnostics.has_errors()) session.exit_code = core::kExitUsage;
    };
  });
}

/// `--format`, one of `known`.
void add_runs_format(CLI::App& command, std::string& format, const std::vector<std::string>& known);

/// --filter, --sort, --columns, --group-by, --format, --limit.
void add_list_flags(CLI::App& command, review::RunsListRequest& request);

inline constexpr const char* kFilterText = "Those that a filter takes, as `roux runs list` has it";

// Each adds some of the subcommands.
void add_runs_transfer(CLI::App& runs, Session& session);  ///< export, import
void add_runs_keep(CLI::App& runs, Session& session);    ///< tag, untag, note, rename, archive, unarchive, rm, restore
void add_runs_review(CLI::App& runs, Session& session);  ///< diff, tail, plot, groups, report

}  // namespace runner::cli
