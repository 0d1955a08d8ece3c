#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/review/annotate.h"
#include "runner/store/database/text.h"
#include "runner/store/lease.h"
#include "runner/store/run_index.h"

namespace runner::review {
namespace {

namespace fs = std::filesystem;

using store::RunSummary;
using Runs = std::vector<RunSummary>;

constexpr const char* kCommand = "roux runs rm";

enum class Answer { kYes, kNo, kNobodyToAsk };

Answer ask(const std::string& question) {
  if (isatty(STDIN_FILENO) == 0) return Answer::kNobodyToAsk;
  std::fprintf(stderr, "%s [y/N] ", question.c_str());
  std::string line;
  std::getline(std::cin, line);
  return line == "y" || line == "Y" || line == "yes" ? Answer::kYes : Answer::kNo;
}

void refuse_held(const Runs& runs, core::Diagnostics& diagnostics) {
  for (const RunSummary& run : runs) {
    if (!run.owner) continue;
    diagnostics.error({},
                      run.id + " is running: pid " + std::to_string(run.owner->pid) + " on " +
                          core::escape_for_terminal(run.owner->host) + " since " + store::utc_text(run.owner->since_ms),
                      "stop it first, or wait until it ends");
  }
}

fs::path folder_of(const RunSummary& run) { return fs::absolute(run.run_dir).lexically_normal(); }

/// A link to a run is moved as a link: what it leads to stays where it is, so a relative one is rewritten.
int move_folder(const fs::path& from, const fs::path& to) {
  if (!fs::is_symlink(from)) return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  std::error_code error;
  const fs::path target = fs::read_symlink(from, error);
  if (!error) fs::create_directory_symlink((from.parent_path() / target).lexically_normal(), to, error);
  if (!error) fs::remove(from, error);
  return error.value();
}

/// Holds the lease meanwhile, so that no process resumes the run; on a full disk no other process can take it either.
core::Result<void> move_run(const RunSummary& run, const fs::path& to, const core::Clock& clock) {
  auto lease = store::Lease::acquire(run.run_dir, clock);
  if (!lease && lease.failure().exit_code != core::kExitResumable) return lease.failure();
  core::Result<void> moved;
  if (const int error = move_folder(folder_of(run), to); error != 0) {
    const bool taken = error == ENOTEMPTY || error == EEXIST;
    moved = core::Failure{"cannot move " + run.run_dir + " to " + to.string() + ": " +
                              (taken ? "it already exists" : std::strerror(error)),
                          taken ? "move it away first" : ""};
  }
  if (lease) lease.value()->release();
  return moved;
}

std::string question_about(const Runs& runs) {
  std::string text = "move to the trash:\n";
  for (const RunSummary& run : runs) {
    text += "  " + run.id + "  " + core::escape_for_terminal(name_of(run)) + "  " + std::string(to_text(run.status)) +
            ", step " + std::to_string(run.step) + "\n";
  }
  return text + "go ahead?";
}

std::optional<std::string> remove_runs(const RunsContext& context, const RunsRemoveRequest& request,
                                       core::Diagnostics& diagnostics) {
  const auto runs = find_runs(context, request.runs, diagnostics);
  if (!runs) return std::nullopt;
  refuse_held(*runs, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  if (!confirm(question_about(*runs), request.yes, kCommand, diagnostics)) {
    return diagnostics.has_errors() ? std::nullopt : std::optional<std::string>("nothing was removed\n");
  }
  std::string text;
  for (const RunSummary& run : *runs) {
    const fs::path folder = folder_of(run);
    const std::string trash = trash_dir(folder.parent_path().string());
    core::Result<void> done = core::make_folders(trash);
    if (done) done = move_run(run, fs::path(trash) / folder.filename(), context.clock);
    if (!done) {
      diagnostics.error({}, done.failure().message, done.failure().hint);
      continue;
    }
    text += run.id + "  " + core::escape_for_terminal(name_of(run)) + ": in the trash; `roux runs restore " + run.id +
            "` brings it back\n";
  }
  return text;
}

std::int64_t bytes_of(const Runs& runs) {
  std::int64_t bytes = 0;
  std::error_code ignored;
  for (const RunSummary& run : runs) {
    if (fs::is_symlink(run.run_dir)) continue;
    for (fs::recursive_directory_iterator at(run.run_dir, ignored), end; !ignored && at != end; at.increment(ignored)) {
      if (at->is_regular_file(ignored) && !at->is_symlink(ignored))
        bytes += static_cast<std::int64_t>(at->file_size(ignored));
    }
  }
  return bytes;
}

/// The runs that were asked about and the list of them; what else lies there, or came meanwhile, stays.
std::error_code delete_for_good(const Runs& runs, const fs::path& trash) {
  std::error_code error, ignored;
  for (const RunSummary& run : runs) {
    fs::remove_all(run.run_dir, error);
    if (error) return error;
  }
  if (store::list_runs(trash.string(), core::system_clock(), {.with_recipe = false}).empty()) {
    store::RunIndex(trash.string()).remove();
  }
  fs::remove(trash, ignored);  // not when something is left in it
  return error;
}

std::optional<std::string> empty_trash(const RunsContext& context, const RunsRemoveRequest& request,
                                       core::Diagnostics& diagnostics) {
  if (!request.runs.empty()) {
    diagnostics.error({}, "--empty-trash cannot be combined with RUN: it deletes everything in the trash");
    return std::nullopt;
  }
  const std::string trash = trash_dir(context.output_dir);
  const Runs runs = store::list_runs(trash, context.clock, {.with_recipe = false});
  if (runs.empty()) return "the trash of " + context.output_dir + " is empty\n";
  refuse_held(runs, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  const std::string what =
      core::counted(static_cast<std::int64_t>(runs.size()), "run", "runs") + ", " + core::format_bytes(bytes_of(runs));
  if (!confirm("permanently delete the trash of " + context.output_dir + " (" + what + ")?", request.yes, kCommand,
               diagnostics)) {
    return diagnostics.has_errors() ? std::nullopt : std::optional<std::string>("nothing was deleted\n");
  }
  if (const std::error_code error = delete_for_good(runs, trash)) {
    diagnostics.error({}, "cannot delete " + trash + ": " + error.message());
    return std::nullopt;
  }
  return "deleted " + what + "\n";
}

}  // namespace

bool confirm(const std::string& question, bool yes, const std::string& command, core::Diagnostics& diagnostics) {
  if (yes) return true;
  const Answer answer = ask(question);
  if (answer == Answer::kNobodyToAsk) {
    diagnostics.error({}, "`" + command + "` asks for confirmation, but there is no terminal", "add --yes");
  }
  return answer == Answer::kYes;
}

std::optional<std::string> runs_remove(const RunsContext& context, const RunsRemoveRequest& request,
                                       core::Diagnostics& diagnostics) {
  if (request.empty_trash) return empty_trash(context, request, diagnostics);
  if (!request.runs.empty()) return remove_runs(context, request, diagnostics);
  diagnostics.error({}, "roux runs rm needs RUN, or --empty-trash");
  return std::nullopt;
}

std::optional<std::string> runs_restore(const RunsContext& context, const RunsSetRequest& request,
                                        core::Diagnostics& diagnostics) {
  const RunsContext trash{trash_dir(context.output_dir), context.clock, context.terminal};
  if (store::list_runs(trash.output_dir, trash.clock, {.with_recipe = false}).empty()) {
    diagnostics.error({}, "the trash of " + context.output_dir + " is empty");
    return std::nullopt;
  }
  const auto runs = find_runs(trash, request.runs, diagnostics);
  if (!runs) return std::nullopt;
  std::string text;
  for (const RunSummary& run : *runs) {
    const fs::path to = fs::absolute(context.output_dir) / folder_of(run).filename();
    if (const auto done = move_run(run, to, context.clock); !done) {
      diagnostics.error({}, done.failure().message, done.failure().hint);
      continue;
    }
    text += run.id + "  " + core::escape_for_terminal(name_of(run)) + ": back in " + context.output_dir + "\n";
  }
  return text;
}

}  // namespace runner::review
