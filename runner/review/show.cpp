#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/provenance/provenance.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/query/filter.h"
#include "runner/review/branches.h"
#include "runner/review/histograms.h"
#include "runner/review/media.h"
#include "runner/review/runs.h"
#include "runner/review/terminal_plot.h"
#include "runner/review/tracker_status.h"
#include "runner/store/annotations.h"
#include "runner/store/database/text.h"

namespace runner::review {
namespace {

using core::Node;
using store::RunDetails;
using store::RunSummary;

constexpr std::size_t kEventsShown = 12;
constexpr std::size_t kSampleBytesShown = 2000;

struct Page {
  RunSummary run;
  RunDetails details;
  std::vector<store::ArtefactRow> artefacts;  ///< along the branch's lineage
  store::Annotations annotations;
  std::vector<artifact::CheckpointInfo> checkpoints;
  std::optional<artifact::Provenance> provenance;  ///< nothing in the first milliseconds of a run
};

/// Lines of a name and a value, the values in one column.
class Lines {
 public:
  void add(std::string name, std::string value) { lines_.emplace_back(std::move(name), std::move(value)); }

  std::string text() const {
    std::size_t width = 0;
    for (const auto& [name, value] : lines_) width = std::max(width, core::terminal_columns(name));
    std::string text;
    for (const auto& [name, value] : lines_) {
      text += "  " + name + std::string(width - core::terminal_columns(name) + 2, ' ') + value + "\n";
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

std::string value_text(const Node& value) {
  if (value.kind() == Node::Kind::kFloat) return terminal::number_text(value.as_double());
  if (value.is_mapping() || value.is_sequence()) return core::escape_for_terminal(core::to_json(value, -1));
  return core::escape_for_terminal(value.scalar_text());
}

std::string times_text(const RunSummary& run, const core::Clock& clock) {
  std::string text = store::utc_text(run.created_ms) + " (" + terminal::ago_text(run.created_ms, clock.wall_ms()) + ")";
  const std::int64_t end_ms = run.owner ? clock.wall_ms() : run.ended_ms;
  if (end_ms > run.created_ms) {
    const double seconds = query::run_seconds(run, clock);
    text += (run.owner ? ", running for " : ", took ") + core::format_duration(seconds);
  }
  return text;
}

/// `recipe.yaml, `, or whatever language it was written in.
std::string recipe_file(const std::string& run_dir) {
  for (const char* name : {"recipe.yaml", "recipe.yml", "recipe.jsonnet", "recipe.json"}) {
    std::error_code ignored;
    if (std::filesystem::exists(run_dir + "/" + name, ignored)) return std::string(name) + ", ";
  }
  return "";
}

std::string field(const Node& code, const char* key) {
  const Node* value = code.find(key);
  return value != nullptr ? core::escape_for_terminal(value->scalar_text()) : "";
}

/// `1a2b3c4d5e6f on main, 3 files changed (code.diff), 2 untracked`.
std::string code_text(const Node& code) {
  constexpr std::size_t kHashShown = 12;
  std::vector<std::string> parts;
  if (const std::string commit = field(code, "commit"); !commit.empty()) {
    const std::string branch = field(code, "branch");
    parts.push_back(commit.substr(0, kHashShown) + (branch.empty() ? "" : " on " + branch));
  }
  if (const std::int64_t changed = code.find("changed")->as_integer(); changed > 0) {
    const std::string diff = field(code, "diff");
    parts.push_back(core::counted(changed, "file", "files") + " changed" + (diff.empty() ? "" : " (" + diff + ")"));
  }
  if (const std::int64_t untracked = code.find("untracked_count")->as_integer(); untracked > 0) {
    parts.push_back(std::to_string(untracked) + " untracked");
  }
  if (const std::string note = field(code, "note"); !note.empty()) parts.push_back(note);
  return core::joined(parts, ", ");
}

/// Where it came from and where it was made.
void add_origin(const artifact::Provenance& provenance, Lines& lines) {
  if (provenance.code.is_mapping()) {
    lines.add("code", code_text(provenance.code));
    if (const std::string remote = field(provenance.code, "remote"); !remote.empty()) lines.add("", remote);
  }
  if (provenance.host.empty()) return;
  lines.add("host", core::escape_for_terminal(provenance.host) + ", " + provenance.cpu + ", " +
                        core::counted(provenance.cores, "core", "cores") + ", " +
                        core::format_bytes(provenance.memory_bytes));
  lines.add("built with", "roux " + provenance.version + " (" + provenance.source + ", " + provenance.build +
                              "), LibTorch " + provenance.libtorch + " (" + provenance.cpu_capability + ")");
}

std::string head_text(const Page& page, const RunsContext& context) {
  const RunSummary& run = page.run;
  const terminal::Cell status = status_cell(run);
  std::string title = terminal::painted(core::escape_for_terminal(run.name), terminal::Paint::kBold, context.terminal) +
                      "  " + terminal::painted(status.text, status.paint, context.terminal);
  if (!run.reason.empty()) title += ": " + core::escape_for_terminal(run.reason);
  Lines lines;
  lines.add("id", run.id);
  if (!run.label.empty()) lines.add("label", core::escape_for_terminal(run.label));
  if (!run.tags.empty()) lines.add("tags", core::escape_for_terminal(core::joined(run.tags, ", ")));
  if (run.archived) lines.add("archived", "yes; `roux runs list --all` shows it");
  if (run.owner) {
    lines.add("in use by", "pid " + std::to_string(run.owner->pid) + " on " +
                               core::escape_for_terminal(run.owner->host) + " since " +
                               store::utc_text(run.owner->since_ms));
  }
  lines.add("began", times_text(run, context.clock));
  lines.add("step", std::to_string(run.step) + (run.branch > 0 ? " (branch " + std::to_string(run.branch) + ")" : ""));
  for (const Node::Entry& entry : run.summary.entries()) {
    if (entry.key == "tokens" && entry.value.is_integer() && entry.value.as_integer() == 0) continue;  // not of text
    if (entry.key != "step" && !run.metrics.contains(entry.key) && !entry.value.is_mapping()) {
      lines.add(core::escape_for_terminal(entry.key), value_text(entry.value));
    }
  }
  if (!page.details.command_line.empty())
    lines.add("command", core::escape_for_terminal(core::joined(page.details.command_line, " ")));
  if (page.provenance) add_origin(*page.provenance, lines);
  lines.add("folder", core::escape_for_terminal(run.run_dir));
  const std::string hash = run.recipe_hash.empty() ? "" : " (recipe hash " + run.recipe_hash + ")";
  std::error_code ignored;
  std::string folders;  // which a short run may not have needed
  for (const char* folder : {"checkpoints/", "logs/"}) {
    if (std::filesystem::is_directory(run.run_dir + "/" + folder, ignored)) folders += std::string(", ") + folder;
  }
  lines.add("", recipe_file(run.run_dir) + "resolved.json" + hash + ", run.db" + folders);
  for (const auto& [time_ms, note] : page.annotations.notes) {
    lines.add("note",
              core::escape_for_terminal(note) + " (" + terminal::ago_text(time_ms, context.clock.wall_ms()) + ")");
  }
  return title + "\n" + lines.text();
}

std::string heading(const char* title, const RunsContext& context) {
  return "\n" + terminal::painted(title, terminal::Paint::kBold, context.terminal) + "\n";
}

std::string metrics_text(const Page& page, const RunsContext& context) {
  if (page.details.series.empty()) return "";
  const std::vector<terminal::Column> columns = {{"  metric", false, true}, {"first", true, false},
                                                 {"last", true, false},     {"best", true, false},
                                                 {"at step", true, false},  {"points", true, false}};
  std::vector<std::vector<terminal::Cell>> rows;
  for (const store::SeriesSummary& series : page.details.series) {
    const MetricDirection better = direction_of(series.key(), page.run.resolved);
    const double best = better == MetricDirection::kHigher ? series.maximum : series.minimum;
    const std::int64_t at = better == MetricDirection::kHigher ? series.maximum_step : series.minimum_step;
    const bool told = better != MetricDirection::kUnknown && !std::isnan(best);
    rows.push_back({{"  " + core::escape_for_terminal(series.key())},
                    {terminal::number_text(series.first)},
                    {terminal::number_text(series.last)},
                    {told ? terminal::number_text(best) : "-"},
                    {told ? std::to_string(at) : "-"},
                    {std::to_string(series.points)}});
  }
  return heading("metrics", context) + terminal::table_text(columns, rows, context.terminal);
}

std::int64_t bytes_of(const artifact::CheckpointInfo& checkpoint) {
  std::int64_t bytes = 0;
  for (const artifact::FileEntry& file : checkpoint.manifest.files) bytes += file.bytes;
  return bytes;
}

std::string checkpoints_text(const Page& page, const RunsContext& context) {
  if (page.checkpoints.empty()) return "";
  std::vector<std::vector<terminal::Cell>> rows;
  for (const artifact::CheckpointInfo& checkpoint : page.checkpoints) {
    std::string metrics;
    for (const Node::Entry& entry : checkpoint.manifest.fields.metrics.entries()) {
      if (!entry.value.is_number()) continue;
      metrics += (metrics.empty() ? "" : ", ") + entry.key + " " + terminal::number_text(entry.value.as_double());
    }
    rows.push_back({{"  " + checkpoint.path.substr(checkpoint.path.rfind('/') + 1)},
                    {std::to_string(checkpoint.step)},
                    {core::format_bytes(bytes_of(checkpoint))},
                    {terminal::ago_text(checkpoint.manifest.created_ms, context.clock.wall_ms())},
                    {core::escape_for_terminal(metrics)}});
  }
  const std::vector<terminal::Column> columns = {{"  folder", false, true},
                                                 {"step", true, false},
                                                 {"size", true, false},
                                                 {"written", false, false},
                                                 {"", false, true}};
  return heading("checkpoints", context) + terminal::table_text(columns, rows, context.terminal);
}

std::string branches_text(const Page& page, const RunsContext& context) {
  if (page.details.branches.size() < 2) return "";
  return heading("branches", context) + branches_lines(page.details.branches);
}

std::string event_text(const store::EventRow& event) {
  std::string text = event.kind + std::string(event.kind.size() < 12 ? 12 - event.kind.size() : 1, ' ');
  for (const Node::Entry& entry : event.data.entries()) text += " " + entry.key + "=" + value_text(entry.value);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return core::printable(text);
}

bool has_a_part_of_its_own(const store::EventRow& event) {
  return event.kind == "text" || event.kind == "eval" || event.kind == "checkpoint" || event.kind == "histogram";
}

/// What happened besides the metrics. Evaluations and saves are in the tables above, texts and histograms below.
std::string events_text(const Page& page, const RunsContext& context) {
  std::vector<const store::EventRow*> events;
  for (const store::EventRow& event : page.details.events) {
    if (!has_a_part_of_its_own(event)) events.push_back(&event);
  }
  if (events.empty()) return "";
  std::string text = heading("events", context);
  const std::size_t left_out = events.size() > kEventsShown ? events.size() - kEventsShown : 0;
  if (left_out > 0) text += "  (" + std::to_string(left_out) + " earlier ones: --format json shows all)\n";
  for (std::size_t i = left_out; i < events.size(); ++i) {
    text += "  step " + std::to_string(events[i]->step) + "  " + event_text(*events[i]) + "\n";
  }
  return text;
}

std::string histograms_part(const Page& page, const RunsContext& context) {
  const std::string text = histograms_text(page.details.events, context.terminal);
  return text.empty() ? "" : heading("histograms", context) + text;
}

std::string media_part(const Page& page, const RunsContext& context) {
  const std::string tables = tables_text(page.run.run_dir, page.artefacts, context.terminal);
  const std::string pictures = pictures_text(page.artefacts, context.terminal);
  return (tables.empty() ? "" : heading("tables", context) + tables) +
         (pictures.empty() ? "" : heading("images", context) + pictures);
}

std::string indented(const std::string& text) {
  std::string lines = "    ";
  for (const char c : text) {
    lines += c;
    if (c == '\n') lines += "    ";
  }
  return lines;
}

std::string trackers_part(const Page& page, const RunsContext& context) {
  const std::string text = trackers_lines(page.run, context.clock);
  return text.empty() ? "" : heading("trackers", context) + text;
}

/// The texts of the last step that has some: what the model had learned to write.
std::string samples_text(const Page& page, const RunsContext& context) {
  std::int64_t last = -1;
  std::size_t at_all = 0;
  for (const store::EventRow& event : page.details.events) {
    if (event.kind == "text") last = std::max(last, event.step), ++at_all;
  }
  if (at_all == 0) return "";
  std::string text = heading("samples", context);
  text += "  at step " + std::to_string(last) + (at_all > 1 ? ", the last of " + std::to_string(at_all) : "") + "\n";
  for (const store::EventRow& event : page.details.events) {
    if (event.kind != "text" || event.step != last) continue;
    const Node* sample = event.data.find("text");
    std::string shown = sample != nullptr ? sample->scalar_text() : core::to_json(event.data, -1);
    if (shown.size() > kSampleBytesShown) {
      std::size_t end = kSampleBytesShown;
      while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0) == 0x80) --end;
      shown.resize(end);
      shown += context.terminal.unicode ? "\u2026" : "...";
    }
    text += indented(core::printable(shown)) + "\n";
  }
  return text;
}

std::string page_json(const Page& page) {
  Node node = run_json(page.run);
  Node series = Node::sequence();
  for (const store::SeriesSummary& one : page.details.series) {
    Node row = Node::mapping();
    row.set("name", Node::string(one.key()));
    row.set("points", Node::integer(one.points));
    row.set("first_step", Node::integer(one.first_step));
    row.set("first", Node::floating(one.first));
    row.set("last_step", Node::integer(one.last_step));
    row.set("last", Node::floating(one.last));
    row.set("min", Node::floating(one.minimum));
    row.set("min_step", Node::integer(one.minimum_step));
    row.set("max", Node::floating(one.maximum));
    row.set("max_step", Node::integer(one.maximum_step));
    series.items().push_back(std::move(row));
  }
  node.set("series", std::move(series));
  Node events = Node::sequence();
  for (const store::EventRow& event : page.details.events) {
    Node row = Node::mapping();
    row.set("kind", Node::string(event.kind));
    row.set("step", Node::integer(event.step));
    row.set("branch", Node::integer(event.branch));
    row.set("time_ms", Node::integer(event.time_ms));
    row.set("data", event.data);
    events.items().push_back(std::move(row));
  }
  node.set("events", std::move(events));
  Node artefacts = Node::sequence();
  for (const store::ArtefactRow& artefact : page.artefacts) {
    Node row = Node::mapping();
    row.set("kind", Node::string(artefact.kind));
    row.set("step", Node::integer(artefact.step));
    row.set("branch", Node::integer(artefact.branch));
    row.set("time_ms", Node::integer(artefact.time_ms));
    row.set("path", Node::string(artefact.path));
    row.set("data", artefact.data);
    artefacts.items().push_back(std::move(row));
  }
  node.set("artefacts", std::move(artefacts));
  Node branches = Node::sequence();
  for (const store::BranchRow& branch : page.details.branches) {
    Node row = Node::mapping();
    row.set("id", Node::integer(branch.id));
    row.set("parent", branch.parent < 0 ? Node::null() : Node::integer(branch.parent));
    row.set("step", Node::integer(branch.step));
    row.set("time_ms", Node::integer(branch.time_ms));
    row.set("last_step", Node::integer(branch.last_step));
    row.set("kept_to", branch.kept_to ? Node::integer(*branch.kept_to) : Node::null());
    row.set("why", Node::string(branch.why));
    branches.items().push_back(std::move(row));
  }
  node.set("branches", std::move(branches));
  Node checkpoints = Node::sequence();
  for (const artifact::CheckpointInfo& checkpoint : page.checkpoints) {
    Node row = Node::mapping();
    row.set("path", Node::string(checkpoint.path));
    row.set("step", Node::integer(checkpoint.step));
    row.set("bytes", Node::integer(bytes_of(checkpoint)));
    row.set("created_ms", Node::integer(checkpoint.manifest.created_ms));
    checkpoints.items().push_back(std::move(row));
  }
  node.set("checkpoints", std::move(checkpoints));
  node.set("trackers", trackers_json(page.run));
  node.set("capsule", page.provenance ? page.provenance->to_node() : Node::null());
  node.set("recipe", page.run.resolved);
  return core::to_json(node) + "\n";
}

Node points_json(const std::vector<store::SeriesPoint>& points) {
  Node list = Node::sequence();
  for (const store::SeriesPoint& point : points) {
    list.items().push_back(Node::sequence({Node::integer(point.step), Node::floating(point.value)}));
  }
  return list;
}

std::string curves_json(const std::vector<BranchCurve>& curves, const RunsShowRequest& request) {
  if (request.branch != "all") return core::to_json(points_json(curves.front().points), -1) + "\n";
  Node list = Node::sequence();
  for (const BranchCurve& curve : curves) {
    Node row = Node::mapping();
    row.set("branch", Node::integer(curve.branch));
    row.set("abandoned", Node::boolean(curve.abandoned));
    row.set("points", points_json(curve.points));
    list.items().push_back(std::move(row));
  }
  return core::to_json(list, -1) + "\n";
}

std::optional<std::string> show_metric(const RunsContext& context, const RunSummary& run,
                                       const RunsShowRequest& request, core::Diagnostics& diagnostics) {
  const auto curves = branch_curves(run.run_dir, request.metric, request.branch, diagnostics);
  if (!curves) return std::nullopt;
  if (request.format == "json") return curves_json(*curves, request);
  return core::escape_for_terminal(run.name) + " " + run.id + "  " + core::escape_for_terminal(request.metric) + "\n" +
         plot_text(to_curves(*curves, request.metric), plot_options(context.terminal), context.terminal);
}

}  // namespace

std::optional<std::string> runs_show(const RunsContext& context, const RunsShowRequest& request,
                                     core::Diagnostics& diagnostics) {
  auto found = find_run(context, request.run, diagnostics);
  if (!found) return std::nullopt;
  if (request.branch == "all" && request.metric.empty()) {
    diagnostics.error({}, "--branch all needs --metric", "add --metric NAME; without it the page lists the branches");
    return std::nullopt;
  }
  Page page;
  page.run = std::move(*found);
  if (!request.metric.empty()) return show_metric(context, page.run, request, diagnostics);
  if (page.run.status != store::RunStatus::kUnreadable) {
    // A run that has just begun has no database yet; the head says all there is.
    auto details = store::read_details(page.run.run_dir, branch_number(request.branch));
    if (details) {
      page.details = std::move(details).value();
      page.artefacts = store::read_artefacts(page.run.run_dir, branch_number(request.branch)).value_or({});
    } else if (!request.branch.empty()) {
      diagnostics.error({}, details.failure().message, details.failure().hint);
      return std::nullopt;
    }
    page.annotations = store::read_annotations(page.run.run_dir);
  }
  if (const std::string path = store::branch_file(page.run.run_dir, artifact::kProvenanceFile); !path.empty()) {
    if (auto provenance = artifact::read_provenance(path)) page.provenance = std::move(provenance).value();
  }
  page.checkpoints = artifact::list_checkpoints(page.run.run_dir + "/checkpoints");
  if (request.format == "json") return page_json(page);
  return head_text(page, context) + metrics_text(page, context) + checkpoints_text(page, context) +
         trackers_part(page, context) + branches_text(page, context) + events_text(page, context) +
         histograms_part(page, context) + media_part(page, context) + samples_text(page, context);
}

}  // namespace runner::review
