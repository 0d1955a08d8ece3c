#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/query/filter.h"
#include "runner/store/run_reader.h"
#include "runner/terminal/text.h"

namespace runner::review {

/// What all of `roux runs` needs to know.
struct RunsContext {
  std::string output_dir;
  const core::Clock& clock;
  terminal::Terminal terminal;
};

struct RunsListRequest {
  std::string filter = "";                ///< store/filter.h; "" takes all
  std::string sort = "";                  ///< a name, `-name` or `name:desc` for the largest first; "" is newest first
  std::vector<std::string> columns = {};  ///< names; empty chooses
  std::string format = "table";           ///< table, json, csv
  int limit = 0;                          ///< 0: no limit
  bool all = false;                       ///< with smoke runs and archived ones
  bool trash = false;                     ///< those in the trash
  std::string group_by = "";              ///< a name: together with those that say the same under it
};

struct RunsShowRequest {
  std::string run = "";
  std::string metric = "";      ///< draws it
  std::string format = "text";  ///< text, json
  std::string branch = "";      ///< a number, or `all` of the plot; "": the newest
};

struct RunsCompareRequest {
  std::vector<std::string> runs = {};
  std::string metric = "";
  std::string branch = "";  ///< of the plot: a number or `all`; "": each run's newest
  std::string format = "text";
};

/// Each returns what to print, or nothing when `diagnostics` has the reason.
std::optional<std::string> runs_list(const RunsContext& context, const RunsListRequest& request,
                                     core::Diagnostics& diagnostics);
std::optional<std::string> runs_show(const RunsContext& context, const RunsShowRequest& request,
                                     core::Diagnostics& diagnostics);
std::optional<std::string> runs_compare(const RunsContext& context, const RunsCompareRequest& request,
                                        core::Diagnostics& diagnostics);

/// Of runs that were read with what the request names: those that its filter takes, sorted, no more than its limit.
/// False when `diagnostics` says which name nobody has.
bool choose_from(std::vector<store::RunSummary>& runs, const RunsListRequest& request,
                 const std::optional<query::Filter>& filter, const RunsContext& context,
                 core::Diagnostics& diagnostics);
/// As a table, JSON or CSV, in groups where the request says so.
std::string list_text(std::vector<store::RunSummary> runs, const RunsListRequest& request,
                      std::vector<std::string> columns, const RunsContext& context);

/// One run, or all that are named, each once. Nothing when `diagnostics` says which is not there.
std::optional<store::RunSummary> find_run(const RunsContext& context, const std::string& text,
                                          core::Diagnostics& diagnostics);
std::optional<std::vector<store::RunSummary>> find_runs(const RunsContext& context,
                                                        const std::vector<std::string>& texts,
                                                        core::Diagnostics& diagnostics);
/// Recipes are read only where a name, or one of the filter's, is theirs, and of them no more than what is asked for: a
/// thousand whole ones take longer than all the rest. `output_dir` holds the runs.
void read_recipes_for(std::vector<store::RunSummary>& runs, const std::string& output_dir,
                      const std::optional<query::Filter>& filter, const std::vector<std::string>& names,
                      const core::Clock& clock);

/// Those that are named, and those that a filter takes (smoke runs and archived ones where it asks for them), newest
/// last. Nothing when `diagnostics` has the reason; there is always one at least.
std::optional<std::vector<store::RunSummary>> choose_runs(const RunsContext& context,
                                                          const std::vector<std::string>& texts,
                                                          const std::string& filter, core::Diagnostics& diagnostics);
/// What a person knows it by: the name given later, else the recipe's.
std::string name_of(const store::RunSummary& run);
/// Where the runs lie that were taken away from among those in `output_dir`.
std::string trash_dir(const std::string& output_dir);

/// Which end of a metric is the good one, as far as its name or the recipe's `checkpoint.monitor` tells.
enum class Better { kUnknown, kLower, kHigher };
Better better_end(const std::string& metric, const core::Node& resolved);

/// The metrics worth a column where none were asked for: those with a good end; losses first, of them those of
/// validation, the most common first.
std::vector<std::string> key_metrics(const std::vector<store::RunSummary>& runs);

/// Whether a metric tells how the machine was used: what stands beside each other leaves these out, as there are
/// dozens.
bool is_of_the_machine(const std::string& metric);

/// A run as `--format json` writes it, without its recipe.
core::Node run_json(const store::RunSummary& run);
terminal::Cell status_cell(const store::RunSummary& run);

}  // namespace runner::review
