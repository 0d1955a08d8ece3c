#include "runner/cli/command/checkpoints/keep.h"
#include "runner/core/utf8.h"

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "runner/artifact/io/io.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/retention.h"
#include "runner/cli/session.h"
#include "runner/core/units.h"
#include "runner/review/checkpoint/checkpoints.h"
#include "runner/store/lease.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::Failure;
using core::Result;

Failure wrong(const std::string& message, const std::string& hint) { return {message, hint, core::kExitUsage}; }

bool holds_manifest(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / artifact::kManifestFile, error);
}

/// The folder that one word means. Links are followed, so that what is renamed is the folder itself.
Result<std::string> path_of(const std::string& text, const std::string& run, const std::string& output_dir) {
  std::error_code error;
  std::vector<std::string> skipped;
  const auto find_run = review::run_finder(output_dir);
  Result<std::string> found = Failure{};
  if (text.find('/') != std::string::npos || text.find(':') != std::string::npos || fs::exists(text, error)) {
    found = artifact::find_checkpoint(text, find_run, skipped);
  } else {
    const Result<artifact::RunCheckpoints> of_run = find_run(run);
    if (!of_run) return wrong(of_run.failure().message, of_run.failure().hint);
    found = artifact::find_checkpoint(of_run.value(), text, skipped);
    // One whose manifest is damaged has no step to be found by; it can still be named by its folder.
    const fs::path damaged = fs::path(of_run.value().folder) / text;
    if (!found && holds_manifest(damaged)) found = damaged.string();
  }
  if (!found) return wrong(found.failure().message, found.failure().hint);
  const fs::path path = fs::canonical(found.value(), error);
  if (error || !holds_manifest(path)) {
    return wrong(found.value() + " is no checkpoint of roux: it holds no manifest.json", "");
  }
  return path.string();
}

/// Each once, in the order given.
Result<std::vector<std::string>> paths_of(const std::string& output_dir, const KeepRequest& request) {
  std::vector<std::string> paths;
  for (const std::string& text : request.checkpoints) {
    const Result<std::string> path = path_of(text, request.run, output_dir);
    if (!path) return path.failure();
    if (std::find(paths.begin(), paths.end(), path.value()) == paths.end()) paths.push_back(path.value());
  }
  return paths;
}

std::string name_of(const std::string& path) { return core::printable(fs::path(path).filename().string()); }

std::string size_of(const std::string& path) {
  const Result<artifact::Manifest> manifest = artifact::read_manifest(path);
  return manifest ? core::format_bytes(artifact::bytes_of(manifest.value())) : "damaged";
}

/// What its run goes by when it is the best of it: `val/loss`; else "".
std::string monitor_if_best(const std::string& path, const std::string& output_dir) {
  const fs::path run_dir = fs::path(path).parent_path().parent_path();
  const Result<artifact::RunCheckpoints> run = review::run_finder(output_dir)(run_dir.string());
  if (!run || run.value().monitor.empty()) return "";
  const auto best = artifact::best_checkpoint(run.value());
  std::error_code error;
  return best && fs::equivalent(best->path, path, error) ? run.value().monitor : "";
}

/// Why one of them should stay; nothing when it may go.
Result<void> refuse_one(const std::string& path, const core::Clock& clock) {
  const fs::path run_dir = fs::path(path).parent_path().parent_path();
  if (const auto owner = store::live_owner(run_dir.string(), clock)) {
    return wrong(name_of(path) + " belongs to a run that process " + std::to_string(owner->pid) + " on " + owner->host +
                     " is training",
                 "its own rotation removes old ones (checkpoint.save_total_limit); stop it first, or add --force");
  }
  if (artifact::is_pinned(path)) {
    return wrong(name_of(path) + " is pinned", "roux checkpoints unpin it first, or add --force");
  }
  if (const auto manifest = artifact::read_manifest(path); !manifest) {
    return wrong(manifest.failure().message, "add --force to remove the folder all the same");
  }
  return {};
}

/// After them, something of each folder has to be left to go on from, when there is now.
Result<void> refuse_last(const std::vector<std::string>& paths) {
  const auto verifies = [](const std::string& path) { return artifact::verify_checkpoint(path).ok(); };
  for (const std::string& path : paths) {
    bool one_stays = false;
    const std::string folder = fs::path(path).parent_path().string();
    for (const artifact::CheckpointInfo& info : artifact::list_checkpoints(folder)) {
      const bool goes = std::find(paths.begin(), paths.end(), info.path) != paths.end();
      one_stays = one_stays || (!goes && verifies(info.path));
    }
    if (one_stays || !verifies(path)) continue;
    return wrong(name_of(path) + " is the only checkpoint left that its run can go on from",
                 "add --force to remove it all the same");
  }
  return {};
}

bool ask_on_terminal(const std::string& question) {
  std::fprintf(stderr, "%s [y/N] ", question.c_str());
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<std::string> set_pins(const std::string& output_dir, const KeepRequest& request, bool pinned) {
  const Result<std::vector<std::string>> paths = paths_of(output_dir, request);
  if (!paths) return paths.failure();
  for (const std::string& path : paths.value()) {
    if (const auto manifest = artifact::read_manifest(path); !manifest && pinned) {
      return wrong(manifest.failure().message, "rotation leaves a damaged one alone anyway");
    }
  }
  std::string text;
  for (const std::string& path : paths.value()) {
    const bool already = artifact::is_pinned(path) == pinned;
    const Result<void> done = pinned ? artifact::pin(path) : artifact::unpin(path);
    if (!done) return done.failure();
    const std::string state = pinned ? "pinned" : "not pinned";
    text += name_of(path) + ": " + (already ? "was " + state + " already" : "is " + state + " now") + "\n";
  }
  return text;
}

}  // namespace

Result<std::string> checkpoints_pin(const std::string& output_dir, const KeepRequest& request) {
  return set_pins(output_dir, request, true);
}

Result<std::string> checkpoints_unpin(const std::string& output_dir, const KeepRequest& request) {
  return set_pins(output_dir, request, false);
}

Result<std::string> checkpoints_rm(const std::string& output_dir, const KeepRequest& request, const core::Clock& clock,
                                   const std::function<bool(const std::string&)>& confirm) {
  const Result<std::vector<std::string>> paths = paths_of(output_dir, request);
  if (!paths) return paths.failure();
  std::string list;
  std::vector<std::string> best_by;
  for (const std::string& path : paths.value()) {
    best_by.push_back(monitor_if_best(path, output_dir));
    list += (list.empty() ? "" : ", ") + core::printable(path) + " (" + size_of(path) +
            (best_by.back().empty() ? "" : ", the best by " + best_by.back()) + ")";
    if (request.force) continue;
    if (const Result<void> may = refuse_one(path, clock); !may) return may.failure();
  }
  if (!request.force) {
    if (const Result<void> may = refuse_last(paths.value()); !may) return may.failure();
  }
  if (!request.yes && !confirm("remove " + list + "?")) return std::string("nothing was removed\n");
  std::string text;
  for (std::size_t i = 0; i < paths.value().size(); ++i) {
    const std::string& path = paths.value()[i];
    const std::string size = size_of(path);
    const auto gone = artifact::attempt([&] { artifact::remove_checkpoint(path, !request.force); });
    if (!gone) return gone.failure();
    text +=
        name_of(path) + ": removed, " + size + (best_by[i].empty() ? "" : "; it was the best by " + best_by[i]) + "\n";
  }
  return text;
}

namespace {

void answer(const Result<std::string>& result, Session& session) {
  if (!result) return session.fail(result.failure().message, result.failure().hint, result.failure().exit_code);
  std::fputs(result.value().c_str(), stdout);
}

CLI::App* add_action(CLI::App& group, const char* name, const char* title, const std::shared_ptr<KeepRequest>& request,
                     const std::string& more_examples) {
  CLI::App* command = group.add_subcommand(name, title);
  command
      ->add_option("CHECKPOINT", request->checkpoints,
                   "step-000500, 500, best or last of --run; a path; or RUN:best and the like")
      ->required();
  command->add_option("--run", request->run, "Whose: id, name, path, or `last`, the default")->type_name("RUN");
  command->footer(std::string("\nExamples:\n  roux checkpoints ") + name + " step-000500\n  roux checkpoints " + name +
                  " best --run tiny-gpt\n" + more_examples);
  return command;
}

void add_mark(CLI::App& group, Session& session, const char* name, const char* title,
              Result<std::string> (*action)(const std::string&, const KeepRequest&)) {
  const auto request = std::make_shared<KeepRequest>();
  CLI::App* command = add_action(group, name, title, request, "");
  command->callback([request, action, &session] {
    session.command = [request, action, &session] { answer(action(session.runs_dir(), *request), session); };
  });
}

void remove(const KeepRequest& request, Session& session) {
  if (!request.yes && ::isatty(STDIN_FILENO) != 1) {
    return session.fail("rm asks before it removes, and standard input is no terminal", "add --yes");
  }
  answer(checkpoints_rm(session.runs_dir(), request, core::system_clock(), ask_on_terminal), session);
}

}  // namespace

void add_checkpoints_keep(CLI::App& group, Session& session) {
  add_mark(group, session, "pin", "Keep a checkpoint: rotation leaves it alone", checkpoints_pin);
  add_mark(group, session, "unpin", "Leave it to rotation again", checkpoints_unpin);
  const auto request = std::make_shared<KeepRequest>();
  CLI::App* command = add_action(group, "rm", "Remove checkpoints", request,
                                 "  roux checkpoints rm 100 200 300 --run runs/tiny-gpt-1a2b --yes\n");
  command->add_flag("--yes,-y", request->yes, "Do not ask");
  command->add_flag("--force", request->force,
                    "Also what is pinned, damaged, the only one left, or of a run that is being trained");
  command->callback([request, &session] { session.command = [request, &session] { remove(*request, session); }; });
}

}  // namespace runner::cli
