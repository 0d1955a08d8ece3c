#include "runner/resolve/rules/rules.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/language/name_map.h"

namespace runner::resolve {

using core::Node;

namespace {

/// Steps of the schedule in an optimizer step.
std::int64_t updates_per_step(const SettledTree& tree) {
  if (tree.is_true("accumulation.adjust_scheduler")) return 1;
  return tree.integer("training.gradient_accumulation_steps").value_or(1);
}

}  // namespace

void one_limit(SettledTree& tree) {
  for (const char* limit : {"max_steps", "max_epochs", "max_tokens", "max_time"}) {
    if (tree.given(std::string("training.") + limit)) return;
  }
  if (tree.was_refused("training")) return;
  tree.error("training", "training needs a limit: max_steps, max_epochs, max_tokens or max_time",
             "write training: {max_steps: 1000, ...}; the first limit reached ends the run");
}

/// Accelerate steps the schedule once a process, takes the mean of the micro-batches' means, and trains on padding.
void compat(SettledTree& tree) {
  if (tree.text("compat") != "accelerate") return;
  tree.fill("lr_scheduler.step_with_optimizer", Node::boolean(true), "compat accelerate");
  tree.fill("lr_scheduler.step_per_process", Node::boolean(true), "compat accelerate");
  tree.fill("accumulation.mean", Node::string("micro_batches"), "compat accelerate");
  tree.fill("loader.count_repeated_samples", Node::boolean(true), "compat accelerate");
  tree.fill("ddp.broadcast_buffers", Node::boolean(true), "compat accelerate");
}

/// Epochs and tokens become steps only when the data is known: `plan` settles those.
void total_steps(SettledTree& tree) {
  const Node* scheduler = tree.value("lr_scheduler");
  if (scheduler == nullptr || scheduler->find("total_steps") == nullptr || tree.given("lr_scheduler.total_steps"))
    return;
  if (tree.given("training.max_epochs") || tree.given("training.max_tokens")) return;
  if (const std::optional<std::int64_t> steps = tree.integer("training.max_steps")) {
    std::int64_t total = 0;
    if (__builtin_mul_overflow(*steps, updates_per_step(tree), &total)) total = *steps;
    tree.fill("lr_scheduler.total_steps", Node::integer(total), "computed from training.max_steps");
    return;
  }
  if (tree.given("training.max_steps") || !tree.given("training.max_time")) return;
  // A constant schedule needs its length only as what warmup_ratio is a share of.
  const Node* open = scheduler->find("total_steps");
  const core::HistoryStep* computed = open->find_step(core::Origin::kComputed);
  const bool needed = computed != nullptr && computed->of == "training";
  if (!needed && !tree.given("lr_scheduler.warmup_ratio")) return;
  tree.error("lr_scheduler",
             "lr_scheduler (" + tree.text("lr_scheduler.type").value_or("") +
                 ") needs total_steps: training has max_time only, which does not determine the number of steps",
             "write lr_scheduler.total_steps, or training.max_steps in addition to max_time");
}

/// Keys of `precision` that another mode is for.
void precision_keys(SettledTree& tree) {
  const std::optional<std::string> mode = tree.text("precision.mode");
  if (!mode || tree.was_refused("precision")) return;
  const Node* overrides = tree.value("precision.overrides");
  const auto is_used = [&](std::string_view wanted) {
    if (std::string_view(*mode).ends_with(wanted)) return true;
    if (overrides == nullptr) return false;
    const auto& entries = overrides->entries();
    return std::any_of(entries.begin(), entries.end(), [&](const Node::Entry& entry) {
      return entry.value.is_string() && std::string_view(entry.value.as_string()).ends_with(wanted);
    });
  };
  // A resolved recipe writes the schema's defaults down, and has to be taken again (tests/cli/recipe/resolve.cli does).
  const auto differs = [&](const std::string& path, double value) {
    const Node* node = tree.value(path);
    if (!tree.written(path) || node == nullptr) return false;
    return (node->is_bool() ? (node->as_bool() ? 1.0 : 0.0) : node->as_double()) != value;
  };
  const auto unused = [&](const std::string& path, const std::string& what, const std::string& hint) {
    tree.warning(path, path + " has no effect: " + what + ", but the mode is " + *mode, hint);
  };
  static constexpr std::pair<const char*, double> kScalerDefaults[] = {
      {"enabled", 1},          {"init_scale", 65536},     {"growth_factor", 2},
      {"backoff_factor", 0.5}, {"growth_interval", 2000}, {"hysteresis", 1}};
  const bool scales = *mode == "16-mixed", is_fixed = tree.given("precision.scaler.loss_scale");
  const std::string instead = *mode == "32-true" ? "write precision.mode: 16-mixed, or leave it out"
                                                 : "bfloat16 has the range of float32 and needs no scale: remove it";
  const auto useless = [&](const std::string& key) {
    const std::string path = "precision.scaler." + key;
    if (!scales) return unused(path, "only 16-mixed scales the loss", instead);
    if (is_fixed && key != "enabled" && key != "loss_scale")
      tree.warning(path, path + " has no effect: loss_scale is fixed", "remove one of the two");
  };
  for (const auto& [key, value] : kScalerDefaults) {
    if (differs(std::string("precision.scaler.") + key, value)) useless(key);
  }
  for (const char* key : {"min_loss_scale", "loss_scale"}) {
    if (tree.given(std::string("precision.scaler.") + key)) useless(key);
  }
  if (!is_used("-mixed")) {
    for (const char* key : {"enabled", "cache_enabled"}) {
      const std::string path = std::string("precision.autocast.") + key;
      if (differs(path, 1.0)) unused(path, "only the mixed modes use autocast", "leave it out");
    }
  }
  if (differs("precision.stochastic_rounding", 1.0) && !is_used("bf16-true")) {
    unused("precision.stochastic_rounding", "only bf16-true rounds its weights", "leave it out");
  }
}

/// Its average would be one of averages.
void one_average(SettledTree& tree) {
  const std::string optimizer = tree.text("optimizer.type").value_or("");
  if (!tree.text("weight_averaging.type") || !optimizer.ends_with("_schedule_free")) return;
  tree.error("weight_averaging",
             "weight_averaging averages the weights, and so does optimizer " + optimizer + " itself",
             "remove weight_averaging, or use adamw or sgd");
}

void micro_batch_can_shrink(SettledTree& tree) {
  constexpr std::string_view kMinus = "minus:";
  const std::optional<std::string> policy = tree.text("training.auto_micro_batch");
  const std::optional<std::int64_t> size = tree.integer("training.micro_batch_size");
  if (!policy || !size || !policy->starts_with(kMinus)) return;
  const std::int64_t by = std::stoll(policy->substr(kMinus.size()));
  if (by < *size) return;
  tree.error("training.auto_micro_batch",
             "auto_micro_batch is " + *policy + ", but micro_batch_size is " + std::to_string(*size) +
                 ": nothing would be left",
             "auto_micro_batch: halve fits every size");
}

void somewhere_to_roll_back_to(SettledTree& tree) {
  if (tree.given("checkpoint.save_steps") || tree.is_true("checkpoint.save_best") || tree.was_refused("checkpoint")) {
    return;
  }
  for (const char* path : {"faults.on_nan", "faults.on_spike"}) {
    if (tree.text(path) != "rollback") continue;
    tree.error(path, std::string(path) + " is rollback, but no checkpoint is saved during training",
               "set the interval with checkpoint.save_steps");
  }
}

/// Keys that would do nothing.
void init_from_source(SettledTree& tree) {
  if (tree.text("init_from.path") || tree.was_refused("init_from.path")) return;
  for (const char* key : {"rename", "include", "exclude", "resize_vocab", "strict"}) {
    const std::string path = std::string("init_from.") + key;
    const Node* value = tree.value(path);
    if (!tree.written(path) || value == nullptr || value->is_null()) continue;
    // A resolved recipe writes the defaults down, and has to be taken again.
    if ((value->is_mapping() && value->entries().empty()) || (value->is_sequence() && value->items().empty())) continue;
    if (value->is_bool() && value->as_bool() == (std::string_view(key) == "strict")) continue;
    return tree.error(path, path + " is set, but init_from.path is not",
                      "add path: a checkpoint folder, a safetensors file, or RUN:best");
  }
}

void init_from_rename(SettledTree& tree) {
  const Node* rules = tree.value("init_from.rename");
  if (rules == nullptr || !rules->is_mapping()) return;
  for (const Node::Entry& rule : rules->entries()) {
    if (!rule.value.is_string()) continue;
    const core::Result<void> fits = core::NameMap::check(rule.key, rule.value.as_string());
    if (!fits) tree.error_at(rule.key_location, "init_from.rename: " + fits.failure().message, fits.failure().hint);
  }
}

}  // namespace runner::resolve
