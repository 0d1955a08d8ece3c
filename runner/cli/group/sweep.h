#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/group/runs.h"
#include "runner/sweep/studies.h"

// Shared by the subcommands of `roux sweep`.

namespace runner::cli {

/// The argument SWEEP.
Option add_sweep_name(Command command, std::string& name);

/// A study and the sweep that it records; nothing when the session has failed.
std::optional<sweep::OpenSweep> open_sweep(Session& session, const std::string& name);
/// As open_sweep(), but fails for a study that was imported without a recipe.
std::optional<sweep::OpenSweep> open_trainable_sweep(Session& session, const std::string& name);

template <typename Request>
using SweepAnswer = std::optional<std::string> (*)(const sweep::OpenSweep&, const Request&, const review::RunsContext&,
                                                   core::Diagnostics&);

/// Makes the subcommand print what `answer` returns for the sweep named by `request->sweep`.
template <typename Request>
void on_sweep_call(Command command, Session& session, std::shared_ptr<Request> request, SweepAnswer<Request> answer) {
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

}  // namespace runner::cli
