#include <optional>
#include <string>

#include "runner/resolve/rules/rules.h"

namespace runner::resolve {
namespace {

constexpr const char* kGraphs = "compile.cuda_graphs";

/// "faults.on_nan is skip", if it is.
std::optional<std::string> setting(const SettledTree& tree, const std::string& path, const std::string& value) {
  if (tree.text(path) != value) return std::nullopt;
  return path + " is " + value;
}

void refuse(SettledTree& tree, const std::optional<std::string>& setting, const std::string& why) {
  if (!setting) return;
  tree.error(kGraphs, "cuda_graphs is true, but " + *setting + ": " + why, "remove one of them");
}

}  // namespace

// What only the built components know is refused with them: runner/train/experiment/cuda_graphs.cpp.
void cuda_graphs(SettledTree& tree) {
  if (!tree.is_true(kGraphs)) return;
  constexpr const char* kDecides = "the CPU decides before the optimizer steps";
  refuse(tree, setting(tree, "faults.on_nan", "skip"), kDecides);
  refuse(tree, setting(tree, "faults.on_nan", "rollback"), kDecides);
  for (const char* action : {"stop", "skip", "rollback"}) {
    refuse(tree, setting(tree, "faults.on_spike", action), kDecides);
  }
  if (tree.is_true("precision.scaler.enabled")) {
    refuse(tree, setting(tree, "precision.mode", "16-mixed"), "the CPU decides on the loss scale of the next step");
  }
  refuse(tree, setting(tree, "precision.mode", "bf16-true"), "the CPU numbers the draws that round the weights");
  for (const char* mode : {"full", "selective"}) {
    refuse(tree, setting(tree, "activation_checkpointing.mode", mode),
           "the CPU restores random numbers in the backward pass");
  }
  const std::int64_t processes = tree.integer("launch.num_processes").value_or(1);
  if (processes > 1) {
    refuse(tree, "launch.num_processes is " + std::to_string(processes), "a step of several processes is not captured");
  }
  cuda_graphs_need_a_gpu(tree);
}

void cuda_graphs_need_a_gpu(SettledTree& tree) {
  if (!tree.is_true(kGraphs) || tree.text("device") != "cpu") return;
  tree.error(kGraphs, "cuda_graphs is true, but the training is on the CPU: only a GPU has graphs",
             "remove it, or train on an NVIDIA GPU");
}

}  // namespace runner::resolve
