#include "runner/cli/estimate/report_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runner/cli/estimate/plan_text.h"
#include "runner/core/json.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"

namespace runner::cli {
namespace {

using core::Node;

std::string bytes_text(double bytes) { return core::format_bytes(std::llround(bytes)); }

/// Columns of texts: the first to the left, the others to the right.
class Table {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line = "  " + row[0];
      for (std::size_t i = 1; i < row.size(); ++i) {
        const std::size_t used = i == 1 ? row[0].size() : row[i].size(), room = i == 1 ? widths[0] : widths[i];
        if (i == 1) line += std::string(room - used, ' ');
        line += "  " + std::string(widths[i] - row[i].size(), ' ') + row[i];
      }
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string heading(const MemoryReport& report) {
  std::string text = core::escape_for_terminal(report.title) + ": ";
  if (!report.model_type.empty()) text += core::escape_for_terminal(report.model_type) + ", ";
  if (!report.architecture.empty()) text += report.architecture + ", ";
  text += core::with_commas(report.sizes.parameters) + " parameters\n";
  if (!report.told.empty()) text += core::escape_for_terminal(report.told) + "\n";
  return text;
}

std::string types_text(const MemoryReport& report, const EstimateFlags& flags) {
  const bool has_loaded =
      std::any_of(report.types.begin(), report.types.end(), [](const TypeRow& row) { return row.loaded.has_value(); });
  Table table;
  std::vector<std::string> head = {"", "largest layer", "total size", "training with Adam"};
  if (has_loaded) head.emplace_back("inference");
  if (has_loaded && flags.tokens > 0) head.push_back("with " + core::with_commas(flags.tokens) + " tokens");
  table.add(head);
  for (const TypeRow& row : report.types) {
    std::vector<std::string> cells = {row.type, bytes_text(row.sizes.largest), bytes_text(row.sizes.total),
                                      row.sizes.adam ? core::format_bytes(row.sizes.adam->most()) : "-"};
    if (has_loaded) cells.push_back(row.loaded ? core::format_bytes(*row.loaded) : "-");
    if (has_loaded && flags.tokens > 0) {
      cells.push_back(row.loaded && row.cache ? core::format_bytes(*row.loaded + *row.cache) : "-");
    }
    table.add(cells);
  }
  std::string largest = report.sizes.largest_names.empty() ? "" : report.sizes.largest_names.front();
  if (report.sizes.largest_names.size() > 1) {
    largest += " and " + std::to_string(report.sizes.largest_names.size() - 1) + " of its size";
  }
  return "weights by type; the largest layer is " + core::escape_for_terminal(largest) + "\n" + table.text();
}

std::string ways_text(const MemoryReport& report) {
  if (report.ways.empty()) return "";
  Table table;
  table.add({"", "weights", "optimizer", "gradients, activations", "all", "recomputed"});
  std::string missing;
  for (const WayRow& row : report.ways) {
    if (!row.plain) {
      missing += "  " + row.name + ": " + core::escape_for_terminal(row.why_not) + "\n";
      continue;
    }
    const engine::MemoryPlan& memory = *row.plain;
    table.add({row.name, core::format_bytes(memory.weights), core::format_bytes(memory.optimizer),
               core::format_bytes(memory.tensors - memory.weights - memory.optimizer),
               core::format_bytes(memory.tensors), row.recomputed ? core::format_bytes(row.recomputed->tensors) : "-"});
  }
  return "training at its peak, of a process: " + report.training + "\n" + table.text() + missing;
}

Node adam_node(const std::optional<pretrained::AdamSizes>& sizes) {
  if (!sizes) return Node::null();
  Node node = Node::mapping();
  node.set("model_bytes", Node::integer(sizes->model));
  node.set("gradients_bytes", Node::integer(sizes->gradients));
  node.set("optimizer_bytes", Node::integer(sizes->optimizer));
  node.set("step_bytes", Node::integer(sizes->step));
  node.set("bytes", Node::integer(sizes->most()));
  return node;
}

Node type_node(const TypeRow& row, const EstimateFlags& flags) {
  Node node = Node::mapping();
  node.set("dtype", Node::string(row.type));
  node.set("largest_layer_bytes", Node::integer(std::llround(row.sizes.largest)));
  node.set("total_bytes", Node::integer(std::llround(row.sizes.total)));
  node.set("training_with_adam", adam_node(row.sizes.adam));
  node.set("inference_bytes", row.loaded ? Node::integer(*row.loaded) : Node::null());
  if (flags.tokens > 0) {
    node.set("tokens", Node::integer(flags.tokens));
    node.set("cache_bytes", row.cache ? Node::integer(*row.cache) : Node::null());
    node.set("inference_with_cache_bytes",
             row.cache && row.loaded ? Node::integer(*row.loaded + *row.cache) : Node::null());
  }
  return node;
}

Node memory_node(const std::optional<engine::MemoryPlan>& memory) {
  if (!memory) return Node::null();
  Node node = Node::mapping();
  const std::pair<const char*, std::int64_t> figures[] = {
      {"weights_bytes", memory->weights},     {"gradients_bytes", memory->gradients},
      {"optimizer_bytes", memory->optimizer}, {"activations_bytes", memory->activations},
      {"batches_bytes", memory->batches},     {"tensor_bytes", memory->tensors},
      {"process_bytes", memory->process}};
  for (const auto& [name, value] : figures) node.set(name, Node::integer(value));
  node.set("peak", Node::string(memory->when));
  return node;
}

Node way_node(const WayRow& row) {
  Node node = Node::mapping();
  node.set("name", Node::string(row.name));
  node.set("trained_parameters", row.plain ? Node::integer(row.trained) : Node::null());
  node.set("memory", memory_node(row.plain));
  node.set("recomputed", memory_node(row.recomputed));
  if (!row.plain) node.set("why_not", Node::string(row.why_not));
  return node;
}

}  // namespace

std::string report_text(const MemoryReport& report, const EstimateFlags& flags) {
  const std::string text = heading(report) + types_text(report, flags) + ways_text(report);
  return report.plan ? text + memory_text(*report.plan) : text;
}

std::string report_json(const MemoryReport& report, const EstimateFlags& flags) {
  Node root = Node::mapping();
  root.set("name", Node::string(report.title));
  root.set("source", Node::string(report.source));
  root.set("model_type", report.model_type.empty() ? Node::null() : Node::string(report.model_type));
  root.set("architecture", report.architecture.empty() ? Node::null() : Node::string(report.architecture));
  if (!report.told.empty()) root.set("note", Node::string(report.told));
  root.set("parameters", Node::integer(report.sizes.parameters));
  std::vector<Node> largest, types, ways;
  for (const std::string& name : report.sizes.largest_names) largest.push_back(Node::string(name));
  for (const TypeRow& row : report.types) types.push_back(type_node(row, flags));
  for (const WayRow& row : report.ways) ways.push_back(way_node(row));
  root.set("largest_layers", Node::sequence(std::move(largest)));
  root.set("dtypes", Node::sequence(std::move(types)));
  if (!report.ways.empty()) {
    root.set("training", Node::string(report.training));
    root.set("ways", Node::sequence(std::move(ways)));
  }
  if (report.plan) root.set("memory", memory_node(report.plan->memory));
  return core::to_json(root);
}

}  // namespace runner::cli
