#include "runner/train/experiment/experiment.h"

#include <ATen/Context.h>

#include <algorithm>
#include <map>
#include <set>

#include "components/data/label/sample_classes.h"
#include "components/data/text_bytes.h"
#include "components/tensor/auxiliary_loss.h"
#include "components/tensor/device.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/teacher.h"
#include "components/tensor/tensors.h"
#include "generated/section/accumulation.h"
#include "generated/section/checkpoint.h"
#include "generated/section/compile.h"
#include "generated/section/eval.h"
#include "generated/section/init_from.h"
#include "generated/section/launch.h"
#include "generated/section/loader.h"
#include "generated/section/parallelism.h"
#include "generated/section/precision.h"
#include "generated/section/teacher.h"
#include "generated/section/training.h"
#include "runner/core/error.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/distributed/process_group.h"
#include "runner/registry/config_parse.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"
#include "runner/train/data/label_kind.h"
#include "runner/train/data/referenced_data.h"
#include "runner/train/data/sample_lengths.h"
#include "runner/train/data/transformed_data.h"
#include "runner/train/experiment/activation_checkpointing.h"
#include "runner/train/experiment/backward_checks.h"
#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/build/schedule_check.h"
#include "runner/train/experiment/build_model.h"
#include "runner/train/experiment/cuda_graphs.h"
#include "runner/train/experiment/data_sets.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/precision.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/tensor_names.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/experiment/weight_average.h"
#include "runner/train/placement/travelling_weights.h"

namespace runner::train {
namespace {

using core::Diagnostics;
using core::Node;

using registry::type_of;
using resolve::Recipe;

/// The block of the training set with another file: whatever its columns become, they become the same.
void build_new_rows(Experiment& experiment, const BuildOptions& options, Diagnostics& diagnostics) {
  core::Location flag;
  flag.source =
      std::make_shared<core::Source>(core::Source{"--input " + options.new_rows, "", core::Source::Kind::kFlag});
  Node block;
  for (const auto& [name, of_set] : experiment.recipe.data) {
    if (name == "train") block = of_set;
  }
  block.set("path", Node::string(options.new_rows, flag));
  components::data::Inputs inputs{kNewRows,
                                  block,
                                  diagnostics,
                                  options.meta,
                                  experiment.train_data.get(),
                                  static_cast<std::uint64_t>(experiment.recipe.seed)};
  inputs.new_rows = true;
  inputs.keep = options.keep;
  inputs.tokenizer = components::data::tokenizer_source(experiment.recipe.tokenizer, diagnostics);
  inputs.labels = label_kind(experiment.recipe, block);
  inputs.decoder = decoder_ids(experiment.recipe);
  if (auto set = components::data::build(block, inputs)) {
    experiment.eval_data.push_back({kNewRows, std::move(set)});
  }
}

void build_data(Experiment& experiment, const BuildOptions& options, Diagnostics& diagnostics) {
  if (options.data_of != nullptr) {
    experiment.train_data = options.data_of->train_data;
    experiment.eval_data = options.data_of->eval_data;
    return;
  }
  const auto& data = experiment.recipe.data;
  const auto seed = static_cast<std::uint64_t>(experiment.recipe.seed);
  const auto wanted = [&options](const std::string& name) {
    return options.data_sets.empty() ||
           std::find(options.data_sets.begin(), options.data_sets.end(), name) != options.data_sets.end();
  };
  const bool is_named = options.new_rows.empty() && !options.data_sets.empty();
  const auto tokenizer = components::data::tokenizer_source(experiment.recipe.tokenizer, diagnostics);
  const components::data::ModelClasses model_classes = train::model_classes(experiment.recipe);
  std::shared_ptr<components::data::Dataset> train;  // without its transforms
  const auto build = [&](const std::string& name, const Node& block) {
    components::data::Inputs inputs{name, block, diagnostics, options.meta, train.get(), seed};
    if (is_named && wanted(name)) inputs.keep = options.keep;
    // Of a recipe without data the new rows stand for the training set, too (resolve/use_only.h).
    inputs.new_rows = !options.new_rows.empty() && block.has_origin(core::Origin::kSettled);
    inputs.tokenizer = tokenizer;
    inputs.labels = label_kind(experiment.recipe, block);
    inputs.decoder = decoder_ids(experiment.recipe);
    inputs.model_classes = model_classes;
    auto set = components::data::build(block, inputs);
    if (name == "train") train = set;
    return with_transforms(std::move(set), inputs);
  };
  for (const auto& [name, block] : data) {
    if (name == "train") experiment.train_data = build(name, block);
  }
  if (experiment.train_data == nullptr) return;
  experiment.class_names = names_of_classes(experiment.recipe, *experiment.train_data);
  if (!options.new_rows.empty()) return build_new_rows(experiment, options, diagnostics);
  for (const auto& [name, block] : data) {
    if (name == "train" || !wanted(name)) continue;
    if (auto set = build(name, block)) experiment.eval_data.push_back({name, std::move(set)});
  }
}

bool reads(const components::loss::Loss& loss, const char* name) {
  const std::vector<std::string> read = loss.reads();
  return std::find(read.begin(), read.end(), name) != read.end();
}

/// The sets of pairs also give what a loss reads of a reference model; a stream gets it step by step.
void add_reference(Experiment& experiment, Diagnostics& diagnostics) {
  const bool of_pairs = reads(*experiment.loss, components::kReferenceChosen),
             of_outputs = compares_outputs(experiment);
  if (of_outputs && !experiment.recipe.teacher) {
    diagnostics.error(experiment.recipe.at("loss").location(),
                      type_of(experiment.recipe.at("loss")) + " compares with a teacher, and the recipe names none",
                      "add teacher: {init_from: FOLDER}");
  }
  if (!of_pairs && !of_outputs && experiment.recipe.teacher) {
    diagnostics.error(experiment.recipe.location("teacher"),
                      "teacher is the reference of a loss, and the recipe's loss compares with none",
                      "use loss: distillation or kto, or dpo without reference_free, or remove teacher");
  }
  if (!of_pairs) return;
  const auto add = [](std::shared_ptr<components::data::Dataset>& set) {
    const bool pairs = set->signature().find(components::kRejectedAt) != nullptr;
    if (pairs && !set->is_stream()) set = std::make_shared<ReferencedData>(std::move(set));
  };
  add(experiment.train_data);
  for (NamedDataset& set : experiment.eval_data) add(set.data);
}

/// A metric that keeps rows of all samples has to have room for those of each set that is evaluated.
void check_rows(const components::metric::Metric& metric, const Experiment& experiment, const Node& block,
                Diagnostics& diagnostics) {
  if (metric.row_width() == 0) return;
  const std::int64_t most = components::metric::kRowNumbersMax / metric.row_width();
  for (const NamedDataset& set : experiment.eval_data) {
    std::int64_t samples = set.data->size();
    if (const auto batches = experiment.recipe.eval->max_batches)
      samples = std::min(samples, counted_samples(experiment.recipe, *batches));
    if (samples <= most) continue;
    diagnostics.error(
        block.location(),
        metric.names().front() + " keeps " + core::counted(metric.row_width(), "number", "numbers") +
            " of each sample, and so at most " + core::with_commas(most) + " samples, but data." + set.name +
            (samples == components::data::kEndless ? " is a stream" : " has " + core::with_commas(samples)),
        "evaluate a part with eval.max_batches, or remove the metric");
  }
}

/// What a metric of texts asks of the model and of the sets.
void check_texts(const Experiment& experiment, const Node& block, Diagnostics& diagnostics) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    diagnostics.error(block.location(), registry::type_of(block) + " judges texts that the model generates, " + why,
                      hint);
  };
  if (!experiment.model->continues_text()) return refuse("and this one does not tell a next token", "remove it");
  for (const components::TensorSpec& port : experiment.model->inputs()) {
    if (port.name == components::kInput || port.name == components::kAttentionMask ||
        port.name == components::kPositions || port.name == components::kDecoderInput)
      continue;
    return refuse("and this one reads \"" + port.name + "\" as well", "remove it");
  }
  for (const NamedDataset& set : experiment.eval_data) {
    const components::BatchSpec& of_set = set.data->signature();
    if (of_set.find(components::kRejectedAt) != nullptr)
      return refuse("and data." + set.name + " has pairs of chosen and rejected", "remove it");
    const auto written = [&](const char* key) {
      const Node* value = experiment.recipe.root.at_path("data." + set.name + "." + key);
      return value != nullptr ? value->scalar_text() : "";
    };
    if (written("packing") == "true")
      return refuse("and data." + set.name + " packs several records into a row",
                    "write packing: false in data." + set.name);
    if (written("loss_on") == "all")
      return refuse("and data." + set.name + " has loss_on: all, which tells no prompt from its answer",
                    "write loss_on: assistant in data." + set.name);
    if (written("train_on_thinking") == "false")
      return refuse("and data." + set.name + " leaves the thoughts of an answer out",
                    "remove train_on_thinking from data." + set.name);
    if (set.data->tokenizer() == nullptr)
      return refuse("and data." + set.name + " has no tokenizer", "use data of type jsonl");
  }
}

/// What a metric of the texts of answers asks of the sets.
void check_answers(const Experiment& experiment, const components::metric::Metric& metric, const Node& block,
                   Diagnostics& diagnostics) {
  if (!metric.judges_answers()) {
    diagnostics.error(block.location(),
                      registry::type_of(block) + " judges a text by one other, and a question may have several answers",
                      "use exact_match or squad_f1");
    return;
  }
  for (const NamedDataset& set : experiment.eval_data) {
    if (set.data->questions() != nullptr) continue;
    diagnostics.error(block.location(),
                      registry::type_of(block) + " judges the texts of answers, and data." + set.name + " has none",
                      "use data of type jsonl, as it is");
    return;
  }
}

/// How many classes there are is known here alone: `val/f1/7` may be none of them.
void check_monitored_class(const Experiment& experiment, Diagnostics& diagnostics) {
  const std::string monitor = experiment.recipe.checkpoint->monitor.value_or("");
  const std::vector<std::string>& names = experiment.metric_names;
  if (std::find(names.begin(), names.end(), monitor) != names.end()) return;
  for (const NamedDataset& set : experiment.eval_data) {
    if (!monitor.starts_with(set.name + "/")) continue;
    const std::string metric = monitor.substr(0, monitor.rfind('/') + 1);
    const auto last =
        std::find_if(names.rbegin(), names.rend(), [&](const auto& one) { return one.starts_with(metric); });
    if (last == names.rend()) continue;
    diagnostics.error(experiment.recipe.location("checkpoint.monitor"),
                      "checkpoint.monitor is " + monitor + ", but the model has no such class", "write " + *last);
  }
}

void build_judges(Experiment& experiment, bool meta, Diagnostics& diagnostics) {
  const components::BatchSpec signature = joint_signature(experiment);
  const std::vector<components::TensorSpec> outputs = experiment.model->outputs();
  const Node& loss = experiment.recipe.loss;
  const bool is_read = !meta && !experiment.train_data->is_stream();
  std::function<std::vector<std::int64_t>()> class_counts;
  if (is_read) class_counts = [&data = *experiment.train_data] { return components::data::count_classes(data); };
  experiment.loss = components::loss::build(loss, {outputs, signature, loss, diagnostics, class_counts});
  if (experiment.loss != nullptr && components::find_spec(outputs, components::kAuxiliaryLoss) != nullptr) {
    experiment.loss = components::loss::with_auxiliary(experiment.loss);
  }
  if (experiment.loss != nullptr) add_reference(experiment, diagnostics);
  const auto ignored = experiment.loss != nullptr ? experiment.loss->ignore_index() : std::nullopt;
  const bool of_labels = experiment.loss != nullptr && experiment.loss->is_of_labels();
  const std::vector<std::string> classes = class_names(*experiment.train_data);
  const components::metric::BytesOf bytes_of = components::data::text_bytes(*experiment.train_data);
  for (const Node& block : experiment.recipe.eval->metrics) {
    auto metric = components::metric::build(
        block, {{outputs, signature, block, diagnostics}, ignored, of_labels, classes, bytes_of});
    if (metric == nullptr) continue;
    check_rows(*metric, experiment, block, diagnostics);
    if (metric->judges_texts() && label_kind(experiment.recipe) == components::data::LabelKind::kSpans) {
      check_answers(experiment, *metric, block, diagnostics);
    } else if (metric->judges_texts()) {
      check_texts(experiment, block, diagnostics);
    }
    experiment.metrics.push_back(std::move(metric));
  }
  check_tensor_names(experiment, diagnostics);
  for (const char* name : {"loss", "grad_norm", "lr"}) experiment.metric_names.emplace_back(name);
  for (const auto& set : experiment.eval_data) {
    experiment.metric_names.push_back(set.name + "/loss");
    for (const auto& metric : experiment.metrics) {
      for (const std::string& name : metric->names()) experiment.metric_names.push_back(set.name + "/" + name);
    }
    if (experiment.loss == nullptr) continue;
    for (const auto& figure : experiment.loss->figure_names())
      experiment.metric_names.push_back(set.name + "/" + figure);
  }
  if (!diagnostics.has_errors()) check_monitored_class(experiment, diagnostics);
}

// Settles what the sections leave to the data: the length of an epoch, and so of the training and its schedule.
void settle_lengths(Experiment& experiment, Diagnostics& diagnostics) {
  const Recipe& recipe = experiment.recipe;
  const auto& training = *recipe.training;
  const auto& loader = *recipe.loader;
  const std::int64_t micro = rank_micro_batch(recipe);
  const std::int64_t window = window_batches(recipe);
  const std::int64_t size = loader.num_samples.value_or(experiment.train_data->size());
  if (loader.group_by_length && !experiment.train_data->signature().padded()) {
    diagnostics.notice(recipe.location("loader.group_by_length"),
                       "group_by_length has no effect: all samples of data.train have the same length");
  }
  if (loader.balance_classes && !components::data::has_classes(*experiment.train_data)) {
    diagnostics.error(recipe.location("loader.balance_classes"),
                      "balance_classes is true, but samples of data.train have no class each", "leave it out");
  }
  const Loader::Options dealt = stepper_options(recipe).loader;
  const std::int64_t processes = recipe.launch->num_processes;
  const std::int64_t samples = BatchSchedule::of({.samples = size,
                                                  .micro_batch_size = micro,
                                                  .ranks = static_cast<int>(processes),
                                                  .drop_last = dealt.drop_last,
                                                  .even = dealt.even,
                                                  .cuts_last_round = dealt.cuts_last_round})
                                   .samples_per_epoch;
  const std::string what_is_read = loader.num_samples ? "loader.num_samples is " + std::to_string(size)
                                                      : "data.train has " + core::counted(size, "sample", "samples");
  if (samples == 0) {
    const core::Location& location = recipe.location("training.micro_batch_size");
    diagnostics.error(
        location.known() ? location : recipe.location("training"),
        what_is_read + ", fewer than one micro-batch of " + std::to_string(micro) +
            (dealt.even && processes > 1 ? " for each of " + std::to_string(processes) + " processes" : "") +
            ", and loader.drop_last drops it",
        "use a smaller micro_batch_size, or `loader: {drop_last: false}`");
    return;
  }
  if (micro > size / window) {
    diagnostics.warning(recipe.location("training"),
                        "the batch of a step is " + std::to_string(micro * window) + ", but " + what_is_read,
                        "use a smaller training.global_batch_size or micro_batch_size");
  }
  experiment.shape = {samples, micro, window, recipe.accumulation->sync_with_dataloader,
                      experiment.train_data->tokens_per_sample()};
  if (training.max_tokens && experiment.shape.tokens_per_sample == 0) {
    diagnostics.error(recipe.location("training.max_tokens"),
                      std::string("max_tokens limits training by tokens, but ") +
                          (experiment.train_data->signature().padded() ? "samples of data.train have different lengths"
                                                                       : "data.train has no tokens"),
                      "use max_steps, max_epochs or max_time");
  }
  experiment.limits = {training.max_steps, training.max_epochs, training.max_tokens, training.max_time};
  experiment.total_steps = total_steps(experiment.limits, experiment.shape).value_or(0);
}

/// Schedule steps per optimizer step: `accumulation.adjust_scheduler`.
std::int64_t schedule_unit(const Recipe& recipe) {
  return recipe.accumulation->adjust_scheduler ? 1 : recipe.training->gradient_accumulation_steps.value_or(1);
}

void build_schedule(Experiment& experiment, Diagnostics& diagnostics) {
  Node& block = experiment.recipe.lr_scheduler;
  const std::string type = type_of(block);
  const registry::Registry& registry = registry::Registry::builtin();
  const registry::Fragment* fragment = registry.find("lr_scheduler", type);
  const Node* written = block.find("total_steps");
  const registry::Property* property = fragment->find("total_steps");
  if (property != nullptr && (written == nullptr || written->is_null())) {
    const Node* ratio = block.find("warmup_ratio");
    const bool needed = !property->default_from.empty() || (ratio != nullptr && !ratio->is_null());
    if (experiment.total_steps == 0 && needed) {
      diagnostics.error(
          block.location(),
          "lr_scheduler " + type + " needs total_steps, which is unknown because only max_time limits the training",
          "write `total_steps:` under lr_scheduler, or give training a max_steps or max_epochs");
      return;
    }
    if (experiment.total_steps > 0) {
      const std::int64_t unit = schedule_unit(experiment.recipe);
      Node total = Node::integer(experiment.total_steps * unit, block.location());
      total.add_history({"settled from training and the size of data.train", core::Origin::kSettled});
      block.set("total_steps", std::move(total));
    }
  }
  const int before = diagnostics.error_count();
  block = registry::validate_component(block, "lr_scheduler", "lr_scheduler", registry, diagnostics);
  experiment.recipe.root.set("lr_scheduler", block);
  if (diagnostics.error_count() != before) return;
  const Node* monitor = block.find("monitor");
  experiment.scheduler = components::lr_scheduler::build(
      block, {&diagnostics, &experiment.metric_names, (monitor != nullptr ? *monitor : block).location()});
  if (experiment.scheduler == nullptr || type == "ramp") return;  // which is there to rise
  const Node* total = block.find("total_steps");
  const bool was_written = written != nullptr && !written->is_null();
  check_schedule(*experiment.scheduler, experiment.total_steps, schedule_unit(experiment.recipe),
                 (was_written ? *total : block).location(), diagnostics);
}

std::vector<std::string> frozen_names(const components::model::Model& model) {
  std::vector<std::string> names;
  for (const auto& parameter : model.parameters()) {
    if (!parameter.tensor.requires_grad()) names.push_back(parameter.name);
  }
  return names;
}

/// The strategy's tensors as the optimizer sees them: in float32.
components::NamedTensors weights_to_move(Experiment& experiment) {
  components::NamedTensors parameters = experiment.strategy->optimizer_tensors();
  const auto is_bf16 = [](const auto& parameter) { return parameter.tensor.scalar_type() == at::kBFloat16; };
  if (std::none_of(parameters.begin(), parameters.end(), is_bf16)) return parameters;
  const Recipe& recipe = experiment.recipe;
  experiment.master_weights = std::make_shared<Bf16MasterWeights>(
      parameters,
      Bf16MasterWeights::Options{recipe.precision->stochastic_rounding, static_cast<std::uint64_t>(recipe.seed)});
  return experiment.master_weights->for_optimizer();
}

std::map<std::string, std::int64_t> elements_of(const components::NamedTensors& parameters) {
  std::map<std::string, std::int64_t> elements;
  for (const auto& parameter : parameters) elements.emplace(parameter.name, parameter.tensor.numel());
  return elements;
}

void build_weight_average(Experiment& experiment, Diagnostics& diagnostics) {
  const Recipe& recipe = experiment.recipe;
  std::shared_ptr<components::weight_averaging::Averaging> averaging;
  if (recipe.weight_averaging) {
    averaging = components::weight_averaging::build(*recipe.weight_averaging, {recipe.base_lr});
    if (experiment.optimizer->has_eval_weights()) {
      diagnostics.error(
          recipe.weight_averaging->location(),
          "weight_averaging averages the weights, and so does optimizer " + type_of(recipe.optimizer) + " itself",
          "remove weight_averaging, or use adamw or sgd");
    }
    if (experiment.total_steps > 0 && averaging->start_step() >= experiment.total_steps) {
      diagnostics.error(recipe.location("weight_averaging.start_step"),
                        "weight_averaging begins after step " + std::to_string(averaging->start_step()) +
                            ", but the training ends with step " + std::to_string(experiment.total_steps),
                        "use a smaller start_step: three quarters of the training is usual for swa");
    }
  }
  components::NamedTensors weights = experiment.strategy->optimizer_tensors();
  for (auto& buffer : experiment.model->buffers()) weights.push_back(std::move(buffer));
  experiment.weight_average = std::make_shared<WeightAverage>(std::move(averaging), weights);
  if (experiment.train_data->is_stream() && experiment.weight_average->updates_bn_stats() &&
      !experiment.model->buffers().empty()) {
    diagnostics.error(recipe.weight_averaging->location(),
                      "the running statistics of the average are measured over an epoch, and data.train is a stream",
                      "remove weight_averaging, or use norms without running statistics");
  }
}

void build_training(Experiment& experiment, const MakeStrategy& make_strategy, Diagnostics& diagnostics) {
  RUNNER_ASSERT(make_strategy, "who trains says how gradients become steps");
  settle_lengths(experiment, diagnostics);
  build_schedule(experiment, diagnostics);
  set_strategy(experiment, make_strategy(experiment));
  const Node& optimizer = experiment.recipe.optimizer;
  auto groups = components::optimizer::make_param_groups(optimizer, weights_to_move(experiment), diagnostics,
                                                         frozen_names(*experiment.model));
  if (!diagnostics.has_errors()) {
    experiment.optimizer =
        components::optimizer::build(optimizer, {std::move(groups), elements_of(experiment.model->parameters())});
  }
  if (experiment.scheduler != nullptr && experiment.optimizer != nullptr &&
      experiment.scheduler->schedules_momentum() && !experiment.optimizer->has_momentum()) {
    diagnostics.error(experiment.recipe.lr_scheduler.location(),
                      "lr_scheduler moves the momentum, and optimizer " + type_of(optimizer) + " has none",
                      "use sgd or rmsprop with momentum, adam or adamw, or leave cycle_momentum out");
  }
  if (experiment.optimizer != nullptr) build_weight_average(experiment, diagnostics);
  for (const Node& block : experiment.recipe.callbacks) {
    auto callback = components::callback::build(
        block, {block, diagnostics, experiment.train_data->signature(), experiment.metric_names});
    if (callback == nullptr) continue;
    callback->check_compatibility(*experiment.model, *experiment.train_data, block, diagnostics);
    experiment.callbacks.push_back({type_of(block), block.location(), std::move(callback)});
  }
  check_backward_step_conflicts(experiment, diagnostics);
  check_deterministic_operations(experiment, diagnostics);
  check_cuda_graphs(experiment, diagnostics);
}

}  // namespace

int Experiment::rank() const { return ranks != nullptr ? ranks->rank() : 0; }
int Experiment::world_size() const { return ranks != nullptr ? ranks->size() : 1; }

const components::data::Dataset* Experiment::find_data(const std::string& name) const {
  if (name == "train") return train_data.get();
  for (const auto& set : eval_data) {
    if (set.name == name) return set.data.get();
  }
  return nullptr;
}

std::unique_ptr<Experiment> build_data_sets(const resolve::Recipe& recipe, const BuildOptions& options,
                                            Diagnostics& diagnostics) {
  auto experiment = std::make_unique<Experiment>();
  experiment->recipe = recipe;
  build_data(*experiment, options, diagnostics);
  if (experiment->train_data == nullptr || diagnostics.has_errors()) return nullptr;
  return experiment;
}

std::unique_ptr<Experiment> build_experiment(const resolve::Recipe& recipe, const BuildOptions& options,
                                             Diagnostics& diagnostics) {
  auto experiment = std::make_unique<Experiment>();
  experiment->recipe = recipe;
  experiment->ranks = options.ranks;
  if (!options.meta) {
    experiment->device = device_of(recipe, options.local_rank);
    experiment->local_rank = options.local_rank;
    const bool pins = recipe.loader->pin_memory.value_or(true);
    experiment->upload = {experiment->device,
                          {pins, recipe.loader->non_blocking.value_or(pins), recipe.compile->cuda_graphs}};
  }
  if (!options.of_ids) {
    build_data(*experiment, options, diagnostics);
    if (experiment->train_data == nullptr) return nullptr;
  }
  build_model(*experiment, options, diagnostics);
  if (experiment->model == nullptr) return nullptr;
  if (!options.of_ids) build_judges(*experiment, options.meta, diagnostics);
  if (options.for_training) build_training(*experiment, options.make_strategy, diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  return experiment;
}

bool refers_by_step(const Experiment& experiment) {
  return experiment.train_data->is_stream() && reads(*experiment.loss, components::kReferenceChosen);
}

bool compares_outputs(const Experiment& experiment) { return reads(*experiment.loss, components::kTeacherOutput); }

void set_strategy(Experiment& experiment, std::shared_ptr<GradientStrategy> strategy) {
  std::vector<Unit> units;
  for (const auto& block : experiment.model->blocks()) {
    components::NamedTensors trained = block->parameters();
    std::erase_if(trained, [](const auto& parameter) { return !parameter.tensor.requires_grad(); });
    units.push_back({block->name(), std::move(trained)});
  }
  strategy->attach(units);
  experiment.rows.reset();
  experiment.strategy = std::move(strategy);
}

checkpoint::WeightAccess weight_access(const Experiment& experiment) {
  checkpoint::WeightAccess access;
  if (experiment.strategy != nullptr) {
    GradientStrategy& strategy = *experiment.strategy;
    access.open = [&strategy](const std::string& name) { strategy.open_weight(name); };
    access.close = [&strategy](const std::string& name) { strategy.close_weight(name); };
    access.in_parts = [&strategy](const std::function<void()>& fill) { strategy.fill_in_parts(fill); };
  }
  if (experiment.placement != nullptr) {
    experiment.placement->add_to(access);
    const components::model::Model& model = *experiment.model;
    access.in_parts = [&model](const std::function<void()>& fill) {
      model.visit_weights([&](const components::block::Block&) { fill(); });
    };
  }
  return access;
}

double forward_flops(const Experiment& experiment, const components::data::Dataset& data) {
  return mean_over_lengths(data, [&](std::int64_t positions) { return experiment.model->forward_flops(positions); });
}

double training_flops(const Experiment& experiment) {
  return mean_over_lengths(*experiment.train_data,
                           [&](std::int64_t positions) { return experiment.model->training_flops(positions); });
}

}  // namespace runner::train
