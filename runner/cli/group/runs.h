#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/flags.h"
#include "runner/cli/session.h"
#include "runner/core/text/text.h"
#include "runner/review/curves.h"
#include "runner/review/runs.h"

// Shared by the subcommands of `roux runs`.

namespace runner::cli {

/// The session's folder of runs, the system's clock, standard output.
review::RunsContext runs_context(const Session& session);

inline constexpr const char* kRunText = "Run: id or a prefix of it, name, folder, or `last`";
inline constexpr const char* kFilterText = "Filter of runs, as in `roux runs list`";

template <typename Request>
using RunsAnswer = std::optional<std::string> (*)(const review::RunsContext&, const Request&, core::Diagnostics&);

/// Makes the subcommand print what `answer` returns for `request`.
template <typename Request>
void on_runs_call(Command command, Session& session, std::shared_ptr<Request> request, RunsAnswer<Request> answer) {
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

/// --filter, --sort, --columns, --group-by, --format, --limit, for a list of `rows`: "runs" or "trials".
void add_list_flags(Command command, Session& session, review::RunsListRequest& request, const std::string& rows);
/// --branch.
void add_branch_flag(Command command, std::string& branch, const char* text);
/// --metric, --x, --smooth.
void add_curve_flags(Command command, review::CurvesRequest& curves);

}  // namespace runner::cli
