#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/diagnostics.h"
#include "runner/core/metric_direction.h"
#include "runner/core/node.h"
#include "runner/query/filter.h"
#include "runner/store/run_reader.h"
#include "runner/terminal/text.h"

namespace runner::review {

/// What all commands of `roux runs` need.
struct RunsContext {
  std::string output_dir;
  const core::Clock& clock;
  terminal::Terminal terminal;
};

struct RunsListRequest {
  std::string filter = "";                ///< query/filter.h; "" matches all
  std::string sort = "";                  ///< a name, `-name` or `name:desc` for the largest first; "" is newest first
  std::vector<std::string> columns = {};  ///< names; empty chooses
  std::string format = "text";            ///< text, json, csv
  int limit = 0;                          ///< 0: no limit
  bool all = false;                       ///< with smoke runs and archived ones
  bool trash = false;                     ///< lists the trash instead
  std::string group_by = "";              ///< a key whose value groups the runs
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

/// Filters, sorts and limits runs that were read for this request. False when `diagnostics` names an unknown key.
bool select_runs(std::vector<store::RunSummary>& runs, const RunsListRequest& request,
                 const std::optional<query::Filter>& filter, const RunsContext& context,
                 core::Diagnostics& diagnostics);
/// As a table, JSON or CSV, grouped by `group_by`.
std::string list_text(std::vector<store::RunSummary> runs, const RunsListRequest& request,
                      std::vector<std::string> columns, const RunsContext& context);

/// One run, or all that are named, each once. Nothing when `diagnostics` names one that was not found.
std::optional<store::RunSummary> find_run(const RunsContext& context, const std::string& text,
                                          core::Diagnostics& diagnostics);
std::optional<std::vector<store::RunSummary>> find_runs(const RunsContext& context,
                                                        const std::vector<std::string>& texts,
                                                        core::Diagnostics& diagnostics);
/// Reads the values of recipes that the filter or `names` need, and no others: a thousand whole recipes take longer
/// than all the rest. `output_dir` holds the runs.
void read_recipes_for(std::vector<store::RunSummary>& runs, const std::string& output_dir,
                      const std::optional<query::Filter>& filter, const std::vector<std::string>& names,
                      const core::Clock& clock);

/// The named runs and those that match a filter (smoke and archived runs if it asks for them), newest last; at least
/// one. Nothing when `diagnostics` has the reason.
std::optional<std::vector<store::RunSummary>> choose_runs(const RunsContext& context,
                                                          const std::vector<std::string>& texts,
                                                          const std::string& filter, core::Diagnostics& diagnostics);
/// The name of a run: that of `roux runs rename`, otherwise the recipe's.
std::string name_of(const store::RunSummary& run);
/// The trash of `output_dir`.
std::string trash_dir(const std::string& output_dir);

using core::MetricDirection;

/// By the recipe's `checkpoint.mode` if the metric is its `checkpoint.monitor`, otherwise by the metric's name.
MetricDirection direction_of(const std::string& metric, const core::Node& resolved);

/// Metrics for the default columns: those with a known better end; losses first, those of validation before others, the
/// most common first.
std::vector<std::string> key_metrics(const std::vector<store::RunSummary>& runs);

/// Reports that no run has the metric `name`, with the metrics that they have: the nearest first, those of the machine
/// last.
void report_no_metric(const std::vector<store::RunSummary>& runs, const std::string& name,
                      core::Diagnostics& diagnostics);

/// Whether a metric is about the use of the machine. Comparisons omit these dozens of metrics.
bool is_machine_metric(const std::string& metric);

/// A run for `--format json`, without its recipe.
core::Node run_json(const store::RunSummary& run);
terminal::Cell status_cell(const store::RunSummary& run);

}  // namespace runner::review
