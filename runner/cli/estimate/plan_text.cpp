#include "runner/cli/estimate/plan_text.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"

namespace runner::cli {
namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  std::string text(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, pattern, arguments)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  va_end(arguments);
  return text;
}

std::string count(std::int64_t n) { return core::format_count(static_cast<double>(n)); }

/// `12.5 %`; never 0 for a part that is there.
std::string share(std::int64_t part, std::int64_t whole) {
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.01 ? "< 0.01 %" : format(percent < 1 ? "%.2f %%" : "%.1f %%", percent);
}

std::string data_text(const engine::Plan& plan) {
  std::string text = "data\n";
  for (const auto& data : plan.data) {
    text += format("  %-14s %s\n", data.name.c_str(), core::escape_for_terminal(data.description).c_str());
    if (std::isfinite(data.unigram_entropy))
      text += format("  %-14s unigram entropy %.4f nats\n", "", data.unigram_entropy);
  }
  return text;
}

std::string model_text(const engine::Plan& plan) {
  std::size_t width = plan.init_from.empty() && plan.reference.empty() && plan.placement.empty() ? 5 : 9;
  for (const auto& block : plan.blocks) width = std::max(width, block.name.size());
  const bool all = plan.trained_parameters == plan.parameters;
  std::string text = format("model: %s parameters", count(plan.parameters).c_str());
  if (!all)
    text += format(", %s of them trained (%s)", count(plan.trained_parameters).c_str(),
                   share(plan.trained_parameters, plan.parameters).c_str());
  text += "\n";
  for (const auto& block : plan.blocks) {
    const std::string trained = all || block.parameters == 0        ? ""
                                : block.trained == 0                ? "frozen"
                                : block.trained == block.parameters ? "trained"
                                                                    : share(block.trained, block.parameters);
    text += format("  %-*s  %10s  ", static_cast<int>(width), block.name.c_str(), count(block.parameters).c_str());
    if (!all) text += format("%-7s  ", trained.c_str());
    text += block.output + "\n";
  }
  if (!plan.init_from.empty())
    text +=
        format("  %-*s  %s\n", static_cast<int>(width), "init_from", core::escape_for_terminal(plan.init_from).c_str());
  if (!plan.reference.empty())
    text +=
        format("  %-*s  %s\n", static_cast<int>(width), "reference", core::escape_for_terminal(plan.reference).c_str());
  if (!plan.placement.empty())
    text += format("  %-*s  %s\n", static_cast<int>(width), "placement", plan.placement.c_str());
  return text;
}

std::string steps_text(std::int64_t steps) { return core::counted(steps, "step", "steps"); }

std::string training_text(const engine::Plan& plan) {
  std::string text = "training\n";
  text += format("  %-14s %lld = micro_batch_size %lld x gradient_accumulation_steps %lld x %lld process%s\n", "batch",
                 static_cast<long long>(plan.global_batch_size), static_cast<long long>(plan.micro_batch_size),
                 static_cast<long long>(plan.gradient_accumulation_steps), static_cast<long long>(plan.num_processes),
                 plan.num_processes == 1 ? "" : "es");
  const std::int64_t all = plan.micro_batch_size * plan.gradient_accumulation_steps * plan.num_processes;
  if (plan.global_batch_size < all) {
    text += format("  %-14s the %lld micro-batches of a step are assigned round-robin; some processes get one fewer\n",
                   "", static_cast<long long>(plan.global_batch_size / plan.micro_batch_size));
  }
  std::string fastest;
  if (plan.fastest_precision == plan.precision)
    fastest = ", the fastest on this processor";
  else if (!plan.fastest_precision.empty())
    fastest = "; on this processor " + plan.fastest_precision + " is the fastest";
  text += format("  %-14s %s%s\n", "precision", plan.precision.c_str(), fastest.c_str());
  if (plan.steps > 0) {
    text += format("  %-14s %s, ", "length", steps_text(plan.steps).c_str());
    if (plan.steps_per_epoch > 0) {
      text += format("%.2f epochs of %s, ", plan.epochs, steps_text(plan.steps_per_epoch).c_str());
    }
    text += count(plan.samples) + (plan.samples == 1 ? " sample" : " samples");
    text += plan.tokens > 0 ? ", " + count(plan.tokens) + " tokens\n" : "\n";
  } else {
    text += format("  %-14s until max_time", "length");
    text += plan.steps_per_epoch > 0 ? "; an epoch has " + steps_text(plan.steps_per_epoch) + "\n" : "\n";
  }
  if (plan.flops_per_step > 0)
    text += format("  %-14s %s a step\n", "FLOPs", core::format_count(plan.flops_per_step).c_str());
  if (!plan.step_wait.empty())
    text += format("  %-14s the CPU waits for the GPU in every step: %s\n", "waits", plan.step_wait.c_str());
  return text;
}

constexpr const char* kShards[] = {"nothing", "optimizer", "gradients", "parameters"};  // by ZeRO's stage

std::string state_text(const engine::StatePlan& state) {
  if (state.by_stage.empty()) return "";
  std::string text = format("model state per process, by what %s\n",
                            core::counted(state.processes, "process shards", "processes shard").c_str());
  text += format("  %-12s %10s %10s %10s %10s\n", "", "weights", "gradients", "optimizer", "all");
  for (std::size_t stage = 0; stage < state.by_stage.size(); ++stage) {
    const engine::HeldState& held = state.by_stage[stage];
    text +=
        format("  %-12s %10s %10s %10s %10s%s\n", kShards[stage], core::format_bytes(held.weights).c_str(),
               core::format_bytes(held.gradients).c_str(), core::format_bytes(held.optimizer).c_str(),
               core::format_bytes(held.total).c_str(), static_cast<int>(stage) == state.stage ? "  this recipe" : "");
  }
  return text;
}

std::int64_t sum(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

std::string flat_text(const engine::FlatPlan& flat) {
  if (flat.units.empty()) return "";
  std::size_t width = 7;
  for (const auto& unit : flat.units) width = std::max(width, unit.path.size());
  const auto row = [width](const char* name, const char* elements, const char* own, const char* padding,
                           const char* aligned, const char* aligned_own, const char* aligned_padding) {
    return format("  %-*s  %11s %11s %8s  %11s %11s %8s\n", static_cast<int>(width), name, elements, own, padding,
                  aligned, aligned_own, aligned_padding);
  };
  std::string text = format("flat parameters of FSDP 1 over %d processes, elements without and with use_orig_params\n",
                            flat.processes);
  text += row("", "unit", "a process", "padding", "unit", "a process", "padding");
  for (const auto& unit : flat.units) {
    text += row(unit.path.empty() ? "(model)" : unit.path.c_str(), std::to_string(unit.elements).c_str(),
                std::to_string(unit.own_elements).c_str(), std::to_string(sum(unit.padding)).c_str(),
                std::to_string(unit.aligned_elements).c_str(), std::to_string(unit.aligned_own_elements).c_str(),
                std::to_string(sum(unit.aligned_padding)).c_str());
  }
  return text;
}

std::string checkpoints_text(const engine::Plan& plan) {
  std::string text = "checkpoints\n";
  text += format("  %-14s %s\n", "saved", core::escape_for_terminal(plan.saved).c_str());
  text += format("  %-14s %s\n", "kept", core::escape_for_terminal(plan.kept).c_str());
  text += format("  %-14s %s each, %lld kept, %s in all; %s while one is written\n", "disk",
                 core::format_bytes(plan.checkpoint_bytes).c_str(), static_cast<long long>(plan.checkpoints_kept),
                 core::format_bytes(plan.checkpoint_bytes * plan.checkpoints_kept).c_str(),
                 core::format_bytes(plan.checkpoint_bytes * plan.checkpoints_at_once).c_str());
  text += format("  %-14s %s\n", "free now", core::format_bytes(plan.disk_free_bytes).c_str());
  return text;
}

}  // namespace

std::string memory_text(const engine::Plan& plan) {
  const engine::MemoryPlan& memory = plan.memory;
  std::string text = format("memory, about %s", core::format_bytes(memory.process).c_str());
  if (plan.num_processes > 1) {
    text += format(" per process, %s in all", core::format_bytes(memory.process * plan.num_processes).c_str());
  }
  text += "\n";
  const auto row = [&text](const char* name, std::int64_t bytes, const std::string& more = "") {
    if (bytes > 0) text += format("  %-16s %s%s\n", name, core::format_bytes(bytes).c_str(), more.c_str());
  };
  row("tensors", memory.tensors, " at peak, " + memory.when + ":");
  row("  weights", memory.weights);
  row("  optimizer", memory.optimizer);
  row("  weight average", memory.weight_average);
  row("  gradients", memory.gradients);
  row("  activations", memory.activations);
  row("  batches", memory.batches);
  if (const engine::GpuMemoryPlan& gpu = memory.gpu; !gpu.device.empty()) {
    const std::int64_t needed = memory.tensors + gpu.workspace + gpu.reserve + gpu.graph;
    row("GPU", needed,
        " of " + (gpu.memory > 0 ? core::format_bytes(gpu.memory) : "an unknown size") + ": the tensors, about " +
            core::format_bytes(gpu.workspace) + " of CUDA itself, " + core::format_bytes(gpu.reserve) +
            " for fragmentation" +
            (gpu.graph > 0 ? ", " + core::format_bytes(gpu.graph) + " that a CUDA graph keeps" : ""));
  }
  row("waiting batches", memory.waiting_batches, " in the memory of the CPU");
  row("data sets", memory.data_sets);
  row("checkpoints", memory.copies, " while one is written during training");
  row("program", memory.program);
  return text;
}

std::string plan_text(const std::string& recipe, const engine::Plan& plan) {
  return recipe + "\n" + data_text(plan) + model_text(plan) + training_text(plan) + memory_text(plan) +
         state_text(plan.state) + flat_text(plan.flat) + checkpoints_text(plan);
}

namespace {

core::Node state_node(const engine::StatePlan& state) {
  using core::Node;
  std::vector<Node> rows;
  for (std::size_t stage = 0; stage < state.by_stage.size(); ++stage) {
    const engine::HeldState& held = state.by_stage[stage];
    Node row = Node::mapping();
    row.set("shard", stage == 0 ? Node::null() : Node::string(kShards[stage]));
    row.set("weights_bytes", Node::integer(held.weights));
    row.set("gradients_bytes", Node::integer(held.gradients));
    row.set("optimizer_bytes", Node::integer(held.optimizer));
    row.set("bytes", Node::integer(held.total));
    row.set("is_recipe", Node::boolean(static_cast<int>(stage) == state.stage));
    rows.push_back(std::move(row));
  }
  return Node::sequence(std::move(rows));
}

core::Node flat_node(const engine::FlatPlan& flat) {
  using core::Node;
  const auto list = [](const std::vector<std::int64_t>& numbers) {
    std::vector<Node> items;
    for (const std::int64_t number : numbers) items.push_back(Node::integer(number));
    return Node::sequence(std::move(items));
  };
  std::vector<Node> rows;
  for (const auto& unit : flat.units) {
    Node row = Node::mapping();
    row.set("path", Node::string(unit.path));
    row.set("elements", Node::integer(unit.elements));
    row.set("process_elements", Node::integer(unit.own_elements));
    row.set("padding", list(unit.padding));
    row.set("aligned_elements", Node::integer(unit.aligned_elements));
    row.set("aligned_process_elements", Node::integer(unit.aligned_own_elements));
    row.set("aligned_padding", list(unit.aligned_padding));
    rows.push_back(std::move(row));
  }
  return Node::sequence(std::move(rows));
}

}  // namespace

namespace {

core::Node remedies_node(const std::vector<engine::Remedy>& remedies) {
  using core::Node;
  std::vector<Node> rows;
  for (const engine::Remedy& remedy : remedies) {
    std::vector<Node> changes;
    for (const std::string& change : remedy.changes) changes.push_back(Node::string(change));
    Node row = Node::mapping();
    row.set("set", Node::sequence(std::move(changes)));
    row.set("needed_bytes", Node::integer(remedy.needed));
    rows.push_back(std::move(row));
  }
  return Node::sequence(std::move(rows));
}

}  // namespace

std::string plan_json(const engine::Plan& plan) {
  using core::Node;
  Node root = Node::mapping();
  std::vector<Node> blocks, data;
  for (const auto& block : plan.blocks) {
    Node row = Node::mapping();
    row.set("name", Node::string(block.name));
    row.set("output", Node::string(block.output));
    row.set("parameters", Node::integer(block.parameters));
    row.set("trained_parameters", Node::integer(block.trained));
    blocks.push_back(std::move(row));
  }
  for (const auto& set : plan.data) {
    Node row = Node::mapping();
    row.set("name", Node::string(set.name));
    row.set("description", Node::string(set.description));
    row.set("samples", set.samples > 0 ? Node::integer(set.samples) : Node::null());  // of a stream: not known
    row.set("tokens_per_sample", Node::integer(set.tokens_per_sample));
    if (std::isfinite(set.unigram_entropy)) row.set("unigram_entropy", Node::floating(set.unigram_entropy));
    data.push_back(std::move(row));
  }
  root.set("data", Node::sequence(std::move(data)));
  root.set("blocks", Node::sequence(std::move(blocks)));
  const std::pair<const char*, std::int64_t> figures[] = {
      {"parameters", plan.parameters},
      {"trained_parameters", plan.trained_parameters},
      {"steps", plan.steps},
      {"samples", plan.samples},
      {"tokens", plan.tokens},
      {"micro_batch_size", plan.micro_batch_size},
      {"gradient_accumulation_steps", plan.gradient_accumulation_steps},
      {"global_batch_size", plan.global_batch_size},
      {"num_processes", plan.num_processes},
      {"memory_bytes", plan.memory.process},
      {"tensor_bytes", plan.memory.tensors},
      {"gpu_memory_bytes", plan.memory.gpu.memory},
      {"gpu_workspace_bytes", plan.memory.gpu.workspace},
      {"gpu_reserve_bytes", plan.memory.gpu.reserve},
      {"gpu_graph_bytes", plan.memory.gpu.graph},
      {"weights_bytes", plan.memory.weights},
      {"optimizer_bytes", plan.memory.optimizer},
      {"weight_average_bytes", plan.memory.weight_average},
      {"gradients_bytes", plan.memory.gradients},
      {"activations_bytes", plan.memory.activations},
      {"batches_bytes", plan.memory.batches},
      {"waiting_batches_bytes", plan.memory.waiting_batches},
      {"data_set_bytes", plan.memory.data_sets},
      {"checkpoint_copy_bytes", plan.memory.copies},
      {"program_bytes", plan.memory.program},
      {"checkpoint_bytes", plan.checkpoint_bytes},
      {"checkpoints_kept", plan.checkpoints_kept},
      {"checkpoints_at_once", plan.checkpoints_at_once},
      {"disk_free_bytes", plan.disk_free_bytes},
  };
  for (const auto& [name, value] : figures) root.set(name, Node::integer(value));
  const bool has_epochs = plan.steps_per_epoch > 0;
  root.set("steps_per_epoch", has_epochs ? Node::integer(plan.steps_per_epoch) : Node::null());
  root.set("precision", Node::string(plan.precision));
  root.set("fastest_precision", plan.fastest_precision.empty() ? Node::null() : Node::string(plan.fastest_precision));
  root.set("memory_peak", Node::string(plan.memory.when));
  root.set("checkpoints_saved_when", Node::string(plan.saved));
  root.set("checkpoints_kept_which", Node::string(plan.kept));
  if (!plan.init_from.empty()) root.set("init_from", Node::string(plan.init_from));
  if (!plan.reference.empty()) root.set("reference", Node::string(plan.reference));
  if (!plan.placement.empty()) root.set("placement", Node::string(plan.placement));
  if (!plan.step_wait.empty()) root.set("step_wait", Node::string(plan.step_wait));
  if (!plan.state.by_stage.empty()) root.set("model_state", state_node(plan.state));
  if (!plan.flat.units.empty()) root.set("flat_parameters", flat_node(plan.flat));
  if (!plan.remedies.fitting.empty()) root.set("changes_that_fit", remedies_node(plan.remedies.fitting));
  root.set("epochs", has_epochs ? Node::floating(plan.epochs) : Node::null());
  root.set("flops_per_step", Node::floating(plan.flops_per_step));
  return core::to_json(root);
}

}  // namespace runner::cli
