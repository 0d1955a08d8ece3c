#include <algorithm>

#include "runner/cli/group/sweep.h"
#include "runner/core/text/text.h"
#include "runner/transfer/optuna.h"

namespace runner::cli {
namespace {

using core::Node;
using sweep::Trial;

struct SweepExportRequest {
  std::string sweep = "last", format = "csv";
  std::string optuna = "";  ///< file of an Optuna storage; "" for standard output
};

/// The paths that are varied, in the order of the sweep.
std::vector<std::string> paths_of(const sweep::OpenSweep& open, const std::vector<sweep::Variant>& variants) {
  std::vector<std::string> paths;
  for (const sweep::Variant& variant : variants) {
    for (const sweep::Assignment& one : open.sweep.space().assignments(variant.point)) {
      if (std::find(paths.begin(), paths.end(), one.path) == paths.end()) paths.push_back(one.path);
    }
  }
  return paths;
}

/// Null if the variant does not set the path.
const Node* value_at(const std::vector<sweep::Assignment>& values, const std::string& path) {
  for (const sweep::Assignment& one : values) {
    if (one.path == path) return &one.value;
  }
  return nullptr;
}

/// The objectives after the first.
std::vector<std::string> other_objectives(const sweep::OpenSweep& open) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < open.sweep.objectives().size(); ++i) names.push_back(open.sweep.objectives()[i].name);
  return names;
}

std::string as_csv(const sweep::OpenSweep& open) {
  const auto& variants = open.study->variants();
  const std::vector<std::string> paths = paths_of(open, variants);
  std::string text = "trial,variant,replicate,state,value,step,run,reason,started_ms,ended_ms";
  for (const std::string& name : other_objectives(open)) text += "," + core::csv_field(name);
  for (const std::string& path : paths) text += "," + core::csv_field(path);
  text += "\r\n";
  for (const Trial& trial : open.study->trials()) {
    const auto values = open.sweep.space().assignments(variants[static_cast<std::size_t>(trial.variant)].point);
    text += std::to_string(trial.number) + "," + std::to_string(trial.variant) + "," + std::to_string(trial.replicate) +
            "," + std::string(to_text(trial.state)) + ",";
    if (trial.value) text += core::to_json(Node::floating(*trial.value), -1);
    text += "," + std::to_string(trial.step) + "," + trial.run + "," + core::csv_field(trial.reason) + "," +
            std::to_string(trial.started_ms) + "," + std::to_string(trial.ended_ms);
    for (std::size_t i = 1; i < open.sweep.objectives().size(); ++i) {
      text += "," + (i <= trial.others.size() ? core::to_json(Node::floating(trial.others[i - 1]), -1) : "");
    }
    for (const std::string& path : paths) {
      const Node* value = value_at(values, path);
      text += ",";
      if (value != nullptr)
        text += core::csv_field(value->is_string() ? value->as_string() : core::to_json(*value, -1));
    }
    text += "\r\n";
  }
  return text;
}

std::string as_json(const sweep::OpenSweep& open) {
  const auto& variants = open.study->variants();
  Node list = Node::sequence();
  for (const Trial& trial : open.study->trials()) {
    Node row = Node::mapping();
    row.set("trial", Node::integer(trial.number));
    row.set("variant", Node::integer(trial.variant));
    row.set("replicate", Node::integer(trial.replicate));
    const std::int64_t parent = variants[static_cast<std::size_t>(trial.variant)].parent;
    if (open.sweep.population() != nullptr) row.set("from", parent < 0 ? Node::null() : Node::integer(parent));
    row.set("state", Node::string(std::string(to_text(trial.state))));
    row.set("value", trial.value ? Node::floating(*trial.value) : Node::null());
    if (!trial.others.empty()) {
      Node others = Node::mapping();
      for (std::size_t i = 0; i < trial.others.size(); ++i) {
        others.set(open.sweep.objectives()[i + 1].name, Node::floating(trial.others[i]));
      }
      row.set("others", std::move(others));
    }
    row.set("step", Node::integer(trial.step));
    row.set("run", Node::string(trial.run));
    row.set("reason", Node::string(trial.reason));
    row.set("started_ms", Node::integer(trial.started_ms));
    row.set("ended_ms", Node::integer(trial.ended_ms));
    Node values = Node::mapping();
    for (sweep::Assignment& one :
         open.sweep.space().assignments(variants[static_cast<std::size_t>(trial.variant)].point))
      values.set(one.path, std::move(one.value));
    row.set("values", std::move(values));
    Node curve = Node::sequence();
    for (const store::SeriesPoint& point : open.study->curve(trial.number))
      curve.items().push_back(Node::sequence({Node::integer(point.step), Node::floating(point.value)}));
    row.set("curve", std::move(curve));
    list.items().push_back(std::move(row));
  }
  Node root = Node::mapping();
  root.set("name", Node::string(open.study->info().name));
  root.set("metric", Node::string(open.sweep.metric()));
  root.set("goal", Node::string(open.sweep.maximizes() ? "maximize" : "minimize"));
  root.set("trials", std::move(list));
  return core::to_json(root) + "\n";
}

std::optional<std::string> answer(const sweep::OpenSweep& open, const SweepExportRequest& request,
                                  const review::RunsContext&, core::Diagnostics& diagnostics) {
  if (!request.optuna.empty()) {
    const transfer::OptunaStudy study = transfer::to_optuna(open.sweep, *open.study);
    if (const auto written = write_optuna(request.optuna, study); !written) {
      diagnostics.error({}, written.failure().message, written.failure().hint);
      return std::nullopt;
    }
    return "wrote " + core::counted(static_cast<std::int64_t>(study.trials.size()), "trial", "trials") + " to " +
           request.optuna + ", study " + study.name + "\n";
  }
  return request.format == "csv" ? as_csv(open) : as_json(open);
}

}  // namespace

void add_sweep_export(Command sweep, Session& session) {
  const auto request = std::make_shared<SweepExportRequest>();
  Command command = sweep.add_subcommand("export", "Export the trials with their values");
  add_sweep_name(command, request->sweep);
  add_format(command, request->format, {"csv", "json"});
  command.add_option("--optuna", request->optuna, "Write a SQLite storage for Optuna instead").type_name("FILE");
  command.footer(
      "\nExamples:\n"
      "  roux sweep export > trials.csv\n"
      "  roux sweep export tiny-gpt --format json > trials.json   # with the curves\n"
      "  roux sweep export tiny-gpt --optuna study.db\n"
      "  python -c 'import optuna; print(optuna.load_study(study_name=None, "
      "storage=\"sqlite:///study.db\").best_trial)'\n");
  on_sweep_call<SweepExportRequest>(command, session, request, answer);
}

}  // namespace runner::cli
