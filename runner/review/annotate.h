#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/review/runs.h"

namespace runner::review {

struct RunsTagRequest {
  std::string run = "";
  std::vector<std::string> tags = {};
};

/// A note or a name; the name "" restores the recipe's.
struct RunsTextRequest {
  std::string run = "";
  std::string text = "";
};

struct RunsSetRequest {
  std::vector<std::string> runs = {};
};

struct RunsRemoveRequest {
  std::vector<std::string> runs = {};
  bool empty_trash = false;
  bool yes = false;  ///< without asking
};

/// Each returns what to print, or nothing when `diagnostics` has the reason; then nothing was changed.
std::optional<std::string> runs_tag(const RunsContext& context, const RunsTagRequest& request,
                                    core::Diagnostics& diagnostics);
std::optional<std::string> runs_untag(const RunsContext& context, const RunsTagRequest& request,
                                      core::Diagnostics& diagnostics);
std::optional<std::string> runs_note(const RunsContext& context, const RunsTextRequest& request,
                                     core::Diagnostics& diagnostics);
std::optional<std::string> runs_rename(const RunsContext& context, const RunsTextRequest& request,
                                       core::Diagnostics& diagnostics);
std::optional<std::string> runs_archive(const RunsContext& context, const RunsSetRequest& request,
                                        core::Diagnostics& diagnostics);
std::optional<std::string> runs_unarchive(const RunsContext& context, const RunsSetRequest& request,
                                          core::Diagnostics& diagnostics);

/// Asks for confirmation on the terminal. Without a terminal an error in the name of `command`. True with `yes`.
bool confirm(const std::string& question, bool yes, const std::string& command, core::Diagnostics& diagnostics);

/// Moves runs to the trash of their folder, after confirm(). A run in use by a process stays.
std::optional<std::string> runs_remove(const RunsContext& context, const RunsRemoveRequest& request,
                                       core::Diagnostics& diagnostics);
std::optional<std::string> runs_restore(const RunsContext& context, const RunsSetRequest& request,
                                        core::Diagnostics& diagnostics);

}  // namespace runner::review
