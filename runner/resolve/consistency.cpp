#include "runner/resolve/consistency.h"

#include <utility>

#include "runner/pretrained/adapter_layers.h"
#include "runner/pretrained/model_config.h"
#include "runner/resolve/rules/rules.h"
#include "runner/resolve/rules/settled_tree.h"

namespace runner::resolve {
namespace {

struct Rule {
  const char* name;
  void (*apply)(SettledTree&);
};

/// In this order: what settles a value comes before what reads it.
constexpr Rule kRules[] = {
    {"automatic_processes", automatic_processes},
    {"run_name_words", run_name_words},
    {"train_set", train_set},
    {"data_set_names", data_set_names},
    {"held_out", held_out},
    {"streamed_sets", streamed_sets},
    {"transforms", transforms},
    {"one_limit", one_limit},
    {"batch_algebra", batch_algebra},
    {"counted_batch", counted_batch},
    {"bn_batch", bn_batch},
    {"compat", compat},
    {"total_steps", total_steps},
    {"metric_directions", metric_directions},
    {"sweep_metric", sweep_metric},
    {"sweep_isolation", sweep_isolation},
    {"metric_once", metric_once},
    {"metrics_of_texts", metrics_of_texts},
    {"monitored_metric", monitored_metric},
    {"monitor_needs_evaluation", monitor_needs_evaluation},
    {"something_to_evaluate", something_to_evaluate},
    {"time_for_the_save", time_for_the_save},
    {"micro_batch_can_shrink", micro_batch_can_shrink},
    {"somewhere_to_roll_back_to", somewhere_to_roll_back_to},
    {"init_from_source", init_from_source},
    {"init_from_rename", init_from_rename},
    {"adapters", adapters},
    {"quantization", quantization},
    {"placement", placement_words},
    {"weight_tokenizers", weight_tokenizers},
    {"precision_keys", precision_keys},
    {"cuda_graphs", cuda_graphs},
    {"profiler_activities", profiler_activities},
    {"machines", machines},
    {"gpus", gpus},
    {"random_generators", random_generators},
    {"backend", backend},
    {"exchanged_batches", exchanged_batches},
    {"exchanges", exchanges},
    {"local_sgd", local_sgd},
    {"parallelism", parallelism},
    {"one_process", one_process},
    {"one_average", one_average},
    {"error_feedback", error_feedback},
    {"tracker_names", tracker_names},
    {"tracker_places", tracker_places},
    {"programs", programs},
};

/// `checkpoint.export`: whether there will be something to write, and Transformers has such a model. Reads all of the
/// model's keys, so it comes last.
void check_export(const core::Node& recipe, core::Diagnostics& diagnostics) {
  const core::Node* wanted = recipe.at_path("checkpoint.export");
  if (wanted == nullptr || wanted->is_null()) return;
  const auto is_true = [&recipe](const char* path) {
    const core::Node* value = recipe.at_path(path);
    return value != nullptr && value->is_bool() && value->as_bool();
  };
  if (!is_true("checkpoint.save_at_end") && !is_true("checkpoint.save_best")) {
    diagnostics.error(wanted->location(), "checkpoint.export needs a checkpoint, and save_at_end is false",
                      "remove save_at_end: false, or add save_best: true");
  }
  // No shape decides whether there is such a model.
  const auto config = pretrained::config_of_recipe(recipe, [](const std::string&) {
    return std::vector<std::int64_t>{1, 1};
  });
  if (!config) diagnostics.error(wanted->location(), config.failure().message, config.failure().hint);
  const core::Node* adapters = recipe.find("adapters");
  const bool adapted = adapters != nullptr && !adapters->items().empty(), merged = wanted->as_string() == "merged";
  if (merged && !adapted) {
    diagnostics.error(wanted->location(), "checkpoint.export is merged, but the model has no adapters",
                      "write export: transformers");
  }
  if (!adapted || merged) return;
  const auto fits = pretrained::check_adapter_export(recipe);
  if (!fits) diagnostics.error(wanted->location(), fits.failure().message, fits.failure().hint);
}

}  // namespace

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const Rule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

void settle(core::Node& recipe, core::Diagnostics& diagnostics, SettleContext context) {
  if (!recipe.is_mapping()) return;
  SettledTree tree(recipe, diagnostics, std::move(context));
  for (const Rule& rule : kRules) rule.apply(tree);
  if (!diagnostics.has_errors()) check_export(recipe, diagnostics);
}

void settle_by_device(core::Node& recipe, core::Diagnostics& diagnostics) {
  SettledTree tree(recipe, diagnostics, {});
  profiler_activities(tree);
  random_generators(tree);
  backend(tree);
  cuda_graphs_need_a_gpu(tree);
}

void check_device(const core::Node& recipe, core::Diagnostics& diagnostics) {
  core::Node copy = recipe;
  settle_by_device(copy, diagnostics);
}

}  // namespace runner::resolve
