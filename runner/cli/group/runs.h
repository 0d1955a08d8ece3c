#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/flags.h"
#include "runner/cli/session.h"
#include "runner/core/text.h"
#include "runner/review/curves.h"
#include "runner/review/runs.h"

// Shared by the subcommands of `roux runs`.

namespace runner::cli {

/// The session's folder of runs, the system's clock, standard output.
review::RunsContext runs_context(const Session& session);

inline constexpr const char* kRunText = "Run: id or its beginning, name, folder, or `last`";
inline constexpr const char* kFilterText = "Filter of runs, as in `roux runs list`";

template <typename Request>
using RunsAnswer = std::optional<std::string> (*)(const review::RunsContext&, const Request&, core::Diagnostics&);

/// Makes the subcommand print what `answer` returns for `request`.
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

/// --filter, --sort, --columns, --group-by, --format, --limit.
void add_list_flags(CLI::App& command, review::RunsListRequest& request);
/// --branch.
void add_branch_flag(CLI::App& command, std::string& branch, const char* text);
/// --metric, --x, --smooth.
void add_curve_flags(CLI::App& command, review::CurvesRequest& curves);

/// A flag with one of these values.
template <typename Value>
void add_choice(CLI::App& command, const std::string& flag, const std::string& text, Value& value,
                const std::vector<std::pair<std::string, Value>>& known) {
  const std::string list = core::joined(known, ", ", &std::pair<std::string, Value>::first);
  const auto position = [known](const std::string& word) {
    std::size_t at = 0;
    while (at < known.size() && known[at].first != word) ++at;
    return at;
  };
  command
      .add_option_function<std::string>(
          flag, [&value, known, position](const std::string& word) { value = known[position(word)].second; },
          text + ": " + list)
      ->type_name("WORD")
      ->check([known, position, list](const std::string& word) {
        return position(word) < known.size() ? std::string() : "must be one of " + list + ", got \"" + word + "\"";
      });
}

}  // namespace runner::cli
