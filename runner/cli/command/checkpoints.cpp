#include "runner/review/checkpoint/checkpoints.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "runner/cli/command/checkpoints/commands.h"
#include "runner/cli/command/checkpoints/keep.h"
#include "runner/cli/commands.h"

namespace runner::cli {
namespace {

/// Nothing when there is no such run; the session says so then.
std::optional<std::string> folder_of(const std::string& run, Session& session) {
  core::Result<std::string> folder = review::checkpoints_folder(session.runs_dir(), run, core::system_clock());
  if (folder) return folder.value();
  session.fail(folder.failure().message, folder.failure().hint);
  return std::nullopt;
}

void list(const std::string& run, Session& session) {
  const std::optional<std::string> folder = folder_of(run, session);
  if (!folder) return;
  const terminal::Terminal terminal = terminal::Terminal::of_stdout(session.color);
  std::fputs(review::checkpoints_list(*folder, terminal, core::system_clock().wall_ms()).c_str(), stdout);
}

void verify(const std::string& run, Session& session) {
  const std::optional<std::string> folder = folder_of(run, session);
  if (!folder) return;
  const review::CheckpointsVerdict verdict = review::checkpoints_verify(*folder);
  if (verdict.whole + verdict.damaged == 0) return session.fail("there is no checkpoint in " + *folder);
  std::fputs(verdict.text.c_str(), stdout);
  if (verdict.damaged > 0) session.exit_code = core::kExitFailed;
}

void add_action(CLI::App& group, Session& session, const char* name, const char* title,
                void (*action)(const std::string&, Session&)) {
  const auto run = std::make_shared<std::string>("last");
  CLI::App* command = group.add_subcommand(name, title);
  command->add_option("RUN", *run, "A run (id, name, path or `last`, the default), or a path to checkpoints");
  command->footer(std::string("\nExamples:\n  roux checkpoints ") + name + " last\n  roux checkpoints " + name +
                  " runs/tiny-gpt-1a2b/checkpoints/step-000500\n");
  command->callback([run, action, &session] { session.command = [run, action, &session] { action(*run, session); }; });
}

}  // namespace

void add_checkpoints(CLI::App& app, Session& session) {
  CLI::App* group = app.add_subcommand("checkpoints", "List, verify, compare, keep and remove what runs have saved");
  add_action(*group, session, "list", "Show a run's checkpoints", list);
  add_action(*group, session, "verify", "Read every byte and compare with what was recorded", verify);
  add_checkpoints_keep(*group, session);
  add_checkpoints_diff(*group, session);
}

}  // namespace runner::cli
