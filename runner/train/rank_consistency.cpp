#include "runner/train/rank_consistency.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "generated/section/launch.h"
#include "runner/artifact/io/checksum.h"
#include "runner/core/build_info.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/text.h"
#include "runner/distributed/process_group.h"
#include "runner/resolve/recipe.h"
#include "runner/store/null_run_writer.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/strategy/rank_differences.h"

namespace runner::train {
namespace {

using core::Node;
using distributed::ProcessGroup;

constexpr const char* kAuto = "auto";
constexpr const char* kGloo = "gloo";
constexpr const char* kNccl = "nccl";

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
  node.set("backend", Node::string(start.backend));
  node.set("former_values", start.former_values);
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
  start.backend = text(node, "backend");
  start.former_values = *node.find("former_values");
  if (node.find("run_dir") != nullptr) {
    start.resume =
        store::ResumePoint{text(node, "run_dir"), node.find("step")->as_integer(), node.find("branch")->as_integer()};
  }
  return start;
}

std::vector<RankGpu> gpus_of_ranks(ProcessGroup& ranks, const TrainRequest& request, const c10::Device& device) {
  const c10::DeviceIndex index = device.index();
  std::string mine;
  if (request.nccl != nullptr && index >= 0 && std::cmp_less(index, request.gpu_addresses.size())) {
    mine = "GPU " + request.gpu_addresses[static_cast<std::size_t>(index)] + " of " + core::host_name();
  }
  const auto names = ranks.all_gather(mine, "GPUs"), boots = ranks.all_gather(core::boot_id(), "machines");
  std::vector<RankGpu> gpus;
  for (std::size_t rank = 0; rank < names.size(); ++rank) gpus.push_back({names[rank], boots[rank]});
  return gpus;
}

}  // namespace

std::shared_ptr<ProcessGroup> join_process_group(const resolve::Recipe& recipe,
                                                 const std::optional<core::RankInfo>& rank,
                                                 const std::string& auto_device) {
  if (!rank) return nullptr;
  const auto& launch = *recipe.launch;
  const bool debug = launch.debug || is_switched_on("ROUX_DEBUG") || is_switched_on("ACCELERATE_DEBUG_MODE");
  std::shared_ptr<ProcessGroup> ranks = distributed::init_process_group(*rank, {launch.timeout, debug});
  const ArithmeticEnvironment environment = current_environment();
  check_ranks_agree(*ranks,
                    {{"the program", std::string(core::program_version()) + " of source " + core::source_hash()},
                     {"LibTorch", environment.libtorch},
                     {"the recipe", recipe.hash()},
                     {"the device", recipe.device == "auto" ? auto_device : recipe.device},
                     {"launch.backend", std::string(to_text(launch.backend))},
                     {"CPU instructions", environment.cpu_capability},
                     {"threads", std::to_string(environment.threads)}},
                    "rank identity", "ranks must agree on all of this");
  return ranks;
}

core::Result<std::string> backend_for(const std::string& wanted, const std::vector<RankGpu>& gpus) {
  std::map<std::pair<std::string, std::string>, std::size_t> first_with;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    const RankGpu& gpu = gpus[rank];
    const auto [first, is_new] = first_with.emplace(std::pair(gpu.name, gpu.boot), rank);
    if (!gpu.name.empty() && is_new) continue;
    if (wanted == kAuto) return std::string(kGloo);
    if (gpu.name.empty()) {
      return core::Failure{"rank " + std::to_string(rank) + " has a roux without NCCL",
                           "the wheel of roux has it, and `ROUX_PRESET=cuda ./roux` builds it with"};
    }
    return core::Failure{
        "ranks " + std::to_string(first->second) + " and " + std::to_string(rank) + " share " + gpu.name,
        "start one process for each GPU"};
  }
  return std::string(kNccl);
}

std::optional<std::string> agree_on_backend(ProcessGroup& ranks, const resolve::Recipe& recipe,
                                            const TrainRequest& request, const Start& start,
                                            core::Diagnostics& diagnostics) {
  const c10::Device device = device_of(recipe, request.rank->local_rank);
  std::string wanted(to_text(recipe.launch->backend));
  const bool stays = wanted == kAuto && start.device.starts_with("cuda") && !start.backend.empty();
  if (stays) wanted = start.backend;
  if (device.is_cpu() || wanted == kGloo) return kGloo;
  const auto backend = backend_for(wanted, gpus_of_ranks(ranks, request, device));
  if (!backend) {
    const core::Failure& failure = backend.failure();
    const std::string message = stays ? "the run exchanged its tensors over NCCL, but " : "backend is nccl, but ";
    const std::string instead = start.backend.empty()
                                    ? ", or write backend: gloo"
                                    : ", or resume with --set launch.backend=gloo --allow-change launch.backend";
    diagnostics.error(stays ? core::Location{} : recipe.location("launch.backend"), message + failure.message,
                      failure.hint + instead);
    return std::nullopt;
  }
  if (backend.value() == kNccl) ranks.connect_gpus(request.nccl, device.index());
  return backend.value();
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
