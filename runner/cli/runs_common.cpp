#include <array>
#include <string_view>

#include "runner/cli/runs.h"

namespace runner::cli {
namespace {

using core::Node;

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text.find(word) != std::string_view::npos) return true;
  }
  return false;
}

Node metrics_json(const std::map<std::string, double>& metrics) {
  Node node = Node::mapping();
  for (const auto& [name, value] : metrics) node.set(name, Node::floating(value));
  return node;
}

}  // namespace

Better better_end(const std::string& metric, const Node& resolved) {
  const Node* monitor = resolved.at_path("checkpoint.monitor");
  const Node* mode = resolved.at_path("checkpoint.mode");
  if (monitor != nullptr && monitor->is_string() && monitor->as_string() == metric && mode != nullptr) {
    return mode->scalar_text() == "max" ? Better::kHigher : Better::kLower;
  }
  const std::string_view name = std::string_view(metric).substr(metric.rfind('/') + 1);
  if (name == "loss_scale") return Better::kUnknown;  // of the gradient scaler: a setting, not a loss
  if (contains_any(name, {"accuracy", "f1", "auc"})) return Better::kHigher;
  if (contains_any(name, {"loss", "perplexity", "mse", "mae", "error"})) return Better::kLower;
  return Better::kUnknown;
}

Node run_json(const store::RunSummary& run) {
  Node node = Node::mapping();
  node.set("id", Node::string(run.id));
  node.set("name", Node::string(run.name));
  if (!run.label.empty()) node.set("label", Node::string(run.label));
  std::vector<Node> tags;
  for (const std::string& tag : run.tags) tags.push_back(Node::string(tag));
  node.set("tags", Node::sequence(std::move(tags)));
  node.set("run_dir", Node::string(run.run_dir));
  node.set("status", Node::string(std::string(to_text(run.status))));
  node.set("reason", Node::string(run.reason));
  node.set("smoke", Node::boolean(run.smoke));
  node.set("step", Node::integer(run.step));
  node.set("branch", Node::integer(run.branch));
  node.set("recipe_hash", Node::string(run.recipe_hash));
  node.set("created_ms", Node::integer(run.created_ms));
  node.set("ended_ms", run.ended_ms > 0 ? Node::integer(run.ended_ms) : Node::null());
  if (run.owner) {
    Node owner = Node::mapping();
    owner.set("host", Node::string(run.owner->host));
    owner.set("pid", Node::integer(run.owner->pid));
    owner.set("since_ms", Node::integer(run.owner->since_ms));
    node.set("owner", std::move(owner));
  }
  node.set("metrics", metrics_json(run.metrics));
  node.set("summary", run.summary);
  return node;
}

Cell status_cell(const store::RunSummary& run) {
  static constexpr std::array<Paint, 6> kPaints = {Paint::kCyan,   Paint::kGreen, Paint::kRed,
                                                   Paint::kYellow, Paint::kRed,   Paint::kRed};
  return {std::string(to_text(run.status)), kPaints[static_cast<std::size_t>(run.status)]};
}

}  // namespace runner::cli
