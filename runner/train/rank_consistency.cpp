#include "runner/train/rank_consistency.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/io/checksum.h"
#include "runner/core/build_info.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text.h"
#include "runner/distributed/process_group.h"
#include "runner/store/null_run_writer.h"
#include "runner/store/run_writer.h"
#include "runner/train/strategy/rank_differences.h"

namespace runner::train {
namespace {

using core::Node;
using distributed::ProcessGroup;

Node read(const std::string& json) { return core::parse_json(json).value(); }
std::string text(const Node& node, const char* key) { return node.find(key)->as_string(); }

/// As Accelerate parses its own switches.
bool is_switched_on(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return false;
  const std::string text = core::lower(value);
  return text == "1" || text == "true" || text == "yes" || text == "on" || text == "y" || text == "t";
}

Node to_node(const Start& start) {
  Node node = Node::mapping();
  node.set("checkpoint", Node::string(start.checkpoint));
  node.set("device", Node::string(start.device));
  if (start.resume) {
    node.set("run_dir", Node::string(start.resume->run_dir));
    node.set("step", Node::integer(start.resume->step));
    node.set("branch", Node::integer(start.resume->branch));
  }
  return node;
}

Start start_of(const Node& node) {
  Start start;
  start.checkpoint = text(node, "checkpoint");
  start.device = text(node, "device");
  if (node.find("run_dir") != nullptr) {
    start.resume =
        store::ResumePoint{text(node, "run_dir"), node.find("step")->as_integer(), node.find("branch")->as_integer()};
  }
  return start;
}

}  // namespace

std::shared_ptr<ProcessGroup> join_process_group(const resolve::Recipe& recipe, const TrainRequest& request) {
  if (!request.rank) return nullptr;
  const auto& launch = recipe.launch;
  const bool debug = launch.debug || is_switched_on("ROUX_DEBUG") || is_switched_on("ACCELERATE_DEBUG_MODE");
  std::shared_ptr<ProcessGroup> ranks = distributed::init_process_group(*request.rank, {launch.timeout, debug});
  const ArithmeticEnvironment environment = current_environment();
  check_ranks_agree(*ranks,
                    {{"the program", std::string(core::program_version()) + " of source " + core::source_hash()},
                     {"LibTorch", environment.libtorch},
                     {"the recipe", recipe.hash()},
                     {"the device", recipe.device == "auto" ? request.auto_device : recipe.device},
                     {"CPU instructions", environment.cpu_capability},
                     {"threads", std::to_string(environment.threads)}},
                    "rank identity", "ranks must agree on all of this");
  return ranks;
}

void check_equal_weights(ProcessGroup& ranks, const components::model::Model& model) {
  artifact::Checksum checksum;
  for (const auto& parameter : model.parameters()) {
    const at::Tensor values = parameter.tensor.detach().cpu().contiguous();
    checksum.update(values.const_data_ptr(), static_cast<std::int64_t>(values.nbytes()));
  }
  check_ranks_agree(ranks, {{"the initial weights", checksum.text()}}, "weights",
                    "a component does not draw them from the seed, or reads another file");
}

std::optional<Start> choose_start_on_rank_0(ProcessGroup* ranks, core::Diagnostics& diagnostics,
                                            const std::function<Start()>& choose) {
  if (ranks == nullptr || ranks->rank() == 0) {
    Start start = choose();
    const bool refused = diagnostics.has_errors();
    if (ranks != nullptr) ranks->from_rank_0(refused ? "" : core::to_json(to_node(start), -1), "where to begin");
    if (refused) return std::nullopt;
    return start;
  }
  const std::string told = ranks->from_rank_0("", "where to begin");
  if (told.empty()) return std::nullopt;
  return start_of(read(told));
}

std::unique_ptr<store::RunWriter> open_run_on_rank_0(ProcessGroup* ranks,
                                                     const std::function<std::unique_ptr<store::RunWriter>()>& open) {
  if (ranks == nullptr) return open();
  if (ranks->rank() == 0) {
    std::unique_ptr<store::RunWriter> run = open();
    Node node = Node::mapping();
    node.set("run_dir", Node::string(run->run_dir()));
    node.set("run_id", Node::string(run->run_id()));
    node.set("branch", Node::integer(run->branch()));
    ranks->from_rank_0(core::to_json(node, -1), "the run");
    return run;
  }
  const Node node = read(ranks->from_rank_0("", "the run"));
  return store::null_run_writer(text(node, "run_dir"), text(node, "run_id"), node.find("branch")->as_integer());
}

}  // namespace runner::train
