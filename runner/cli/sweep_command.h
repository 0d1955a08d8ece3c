#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/runs_command.h"
#include "runner/cli/sweep.h"

// What the subcommands of `roux sweep` have in common on the command line.

namespace runner::cli {

inline constexpr const char* kSweepText =
    "A sweep: its name, its id or the beginning of it, its run_name, its folder, postgresql://HOST/DATABASE#NAME, or "
    "`last`";

template <typename Request>
using SweepAnswer = std::optional<std::string> (*)(const sweep::OpenSweep&, const Request&, const review::RunsContext&,
                                                   core::Diagnostics&);

/// Makes `request`, whose `sweep` names one, what the subcommand was called with, and `answer` what it does.
template <typename Request>
void on_sweep_call(CLI::App& command, Session& session, std::shared_ptr<Request> request, SweepAnswer<Request> answer) {
  command.fallthrough();
  command.callback([request, answer, &session] {
    session.command = [request, answer, &session] {
      const auto open = open_sweep(session, request->sweep);
      if (!open) return;
      core::Diagnostics diagnostics;
      const auto text = answer(*open, *request, runs_context(session), diagnostics);
      session.show(diagnostics);
      if (text) std::fwrite(text->data(), 1, text->size(), stdout);
      if (diagnostics.has_errors()) session.exit_code = core::kExitUsage;
    };
  });
}

// Each adds one of the subcommands.
void add_sweep_show(CLI::App& sweep, Session& session);
void add_sweep_plot(CLI::App& sweep, Session& session);
void add_sweep_importance(CLI::App& sweep, Session& session);
void add_sweep_report(CLI::App& sweep, Session& session);
void add_sweep_export(CLI::App& sweep, Session& session);
void add_sweep_import(CLI::App& sweep, Session& session);
void add_sweep_studies(CLI::App& sweep, Session& session);  ///< list, rm, restore

/// What `roux sweep plot` draws.
std::vector<std::string> sweep_plot_kinds();

}  // namespace runner::cli
