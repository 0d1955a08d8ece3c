#include "runner/engine/inspect.h"

#include <ATen/ops/softmax.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "components/tensor/tensors.h"
#include "generated/section/eval.h"
#include "generated/section/profiler.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/log.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/engine/run_record.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/observe/evaluator.h"
#include "runner/train/observe/profiler.h"
#include "runner/train/train.h"

namespace runner::engine {
namespace {

using core::Node;

/// Refuses what only tables have; false when the request asks for it of something else.
bool has_columns(const resolve::Recipe& recipe, const EvalRequest& request, core::Diagnostics& diagnostics) {
  const std::string set = request.input.empty() ? request.data : "train";
  const Node* type = recipe.root.at_path("data." + set + ".type");
  const std::string kind = type != nullptr ? type->scalar_text() : "";
  for (const std::string& name : request.keep) {
    constexpr auto kOwn = std::to_array<std::string_view>(
        {"row", "line", "file", "index", "prediction", "probability", "probabilities", "target", "loss", "tokens"});
    if (std::find(kOwn.begin(), kOwn.end(), name) == kOwn.end()) continue;
    diagnostics.error({}, "--keep " + name + ": the output has a column of that name already",
                      "rename the column in the file");
  }
  if (kind == "csv_table") return !diagnostics.has_errors();
  if (!request.input.empty()) {
    diagnostics.error(recipe.location("data.train"),
                      "--input needs a table (csv_table), and data.train is of type " + kind,
                      "add the file to the recipe as a data set, and predict it with --data");
  } else if (!request.keep.empty()) {
    diagnostics.error(recipe.location("data." + set),
                      "--keep needs a table (csv_table), and data." + set + " is of type " + kind, "remove --keep");
  }
  return !diagnostics.has_errors();
}

struct Loaded {
  std::unique_ptr<train::Experiment> experiment;
  const components::data::Dataset* data = nullptr;
  FoundCheckpoint checkpoint;
  train::EvalOptions options;
};

std::optional<Loaded> load(const resolve::Recipe& recipe, const EvalRequest& request, core::Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const auto& [name, block] : recipe.data) names.push_back(name);
  if (request.input.empty() && std::find(names.begin(), names.end(), request.data) == names.end()) {
    const std::string near = core::closest(request.data, names);
    diagnostics.error(
        recipe.location("data"), "no data set is called \"" + request.data + "\"",
        (near.empty() ? "" : "did you mean \"" + near + "\"? ") + ("the recipe has " + core::joined(names)));
    return std::nullopt;
  }
  if (!has_columns(recipe, request, diagnostics)) return std::nullopt;
  Loaded loaded;
  loaded.checkpoint = find_checkpoint(recipe, request);
  const FoundCheckpoint& checkpoint = loaded.checkpoint;
  if (!fits_recorded_recipe(recipe, checkpoint, request, diagnostics)) return std::nullopt;
  if (!fits_recorded_table(recipe, checkpoint, diagnostics)) return std::nullopt;
  train::configure_torch(recipe);
  train::prepare_device(recipe);
  train::BuildOptions options;
  options.for_training = false;
  options.data_sets = {request.data};
  options.new_rows = request.input;
  options.keep = request.keep;
  loaded.experiment = train::build_experiment(recipe, options, diagnostics);
  if (loaded.experiment == nullptr) {
    note_folder(recipe, checkpoint, diagnostics);
    return std::nullopt;
  }
  if (!fits_recorded_files(*loaded.experiment, checkpoint, diagnostics)) return std::nullopt;
  loaded.data = loaded.experiment->find_data(request.input.empty() ? request.data : train::kNewRows);
  checkpoint::load_weights(checkpoint.path, *loaded.experiment->model);
  const auto stepper = train::stepper_options(recipe);
  const auto& eval = *recipe.eval;
  loaded.options.micro_batch_size = eval.micro_batch_size.value_or(stepper.loader.micro_batch_size);
  if (request.input.empty()) loaded.options.max_batches = eval.max_batches;
  loaded.options.autocast = stepper.autocast;
  loaded.options.num_workers = stepper.loader.num_workers;
  loaded.options.prefetch_factor = stepper.loader.prefetch_factor;
  return loaded;
}

/// Records batches of a data set while it lives, if the request asks for a profile.
class BatchProfile {
 public:
  BatchProfile(Loaded& loaded, const EvalRequest& request, double peak_flops) : loaded_(loaded) {
    if (request.profile.empty()) return;
    auto& activities = loaded.experiment->recipe.profiler->activities;
    using Activities = sections::profiler::Activities;
    if (!activities) {
      activities = {Activities::kCpu};
      if (loaded.experiment->device.is_cuda()) activities->push_back(Activities::kCuda);
    }
    const auto written = [](const train::ProfileFiles& files) {
      core::log_info("profile of " + std::to_string(files.steps) + (files.steps == 1 ? " batch: " : " batches: ") +
                     files.trace + "; `roux profile show " + files.key_averages + "` shows it");
    };
    profiler_.emplace(*loaded.experiment,
                      train::ProfilerOptions{request.profile, train::forward_flops(*loaded.experiment, *loaded.data),
                                             peak_flops, written},
                      core::system_clock());
    loaded.options.begin_batch = [this] {
      profiler_->next_step(progress_);
      ++progress_.step;
      progress_.samples = std::min(progress_.step * loaded_.options.micro_batch_size, loaded_.data->size());
    };
  }
  /// Call after the last batch.
  void finish() {
    if (profiler_) profiler_->finish(progress_);
  }

 private:
  Loaded& loaded_;
  std::optional<train::Profiler> profiler_;
  train::Progress progress_;
};

SamplesRead samples_read(const Loaded& loaded, std::int64_t samples) {
  return {samples, loaded.data->size(), loaded.options.max_batches};
}

/// Makes records of a model's outputs.
class Predictor {
 public:
  Predictor(const Loaded& loaded, bool has_target)
      : data_(*loaded.data), loss_(*loaded.experiment->loss), names_{{}, data_.target_names(), has_target} {
    const std::int64_t classes = data_.signature().num_classes;
    for (std::int64_t i = 0; i < classes; ++i) names_.classes.push_back(data_.class_name(i));
  }

  const PredictionNames& names() const { return names_; }

  /// `output` and `target` of one sample.
  Prediction record(std::int64_t index, const at::Tensor& output, const at::Tensor& target) const {
    Prediction made;
    made.index = index;
    if (auto record = data_.record_of(index)) {
      made.unit = record->unit;
      made.number = record->number;
      made.file = std::move(record->file);
    }
    made.kept = data_.kept_of(index);
    if (!names_.classes.empty() && output.dim() == 1) {
      add_class(made, output, target);
    } else if (output.dim() <= 1) {
      made.kind = Prediction::Kind::kValues;
      made.values = numbers(output);
      if (names_.has_target) made.targets = numbers(target);
    } else {
      made.kind = Prediction::Kind::kTokens;
      made.tokens = loss_.count(target.unsqueeze(0));
    }
    if (!names_.has_target) return made;
    const double sum = loss_.sum(output.unsqueeze(0), target.unsqueeze(0)).item<double>();
    made.loss = sum / static_cast<double>(std::max<std::int64_t>(1, loss_.count(target.unsqueeze(0))));
    return made;
  }

 private:
  void add_class(Prediction& made, const at::Tensor& output, const at::Tensor& target) const {
    made.kind = Prediction::Kind::kClass;
    made.probabilities = numbers(at::softmax(output.to(at::kFloat), 0));
    const auto best = std::max_element(made.probabilities.begin(), made.probabilities.end());
    made.probability = *best;
    if (!std::isnan(*best)) made.predicted = best - made.probabilities.begin();  // a softmax is NaN in all or none
    if (names_.has_target) made.target = target.item<std::int64_t>();
  }

  static std::vector<double> numbers(const at::Tensor& values) {
    const at::Tensor flat = values.to(at::kDouble).contiguous();
    const double* all = flat.const_data_ptr<double>();
    return {all, all + flat.numel()};
  }

  const components::data::Dataset& data_;
  const components::loss::Loss& loss_;
  PredictionNames names_;
};

/// The file may not be one that the command reads: it would be gone.
bool overwrites_data(const train::Experiment& experiment, const EvalRequest& request, core::Diagnostics& diagnostics) {
  std::vector<std::string> read = experiment.train_data->files();
  for (const auto& set : experiment.eval_data) {
    for (const std::string& file : set.data->files()) read.push_back(file);
  }
  std::error_code ignored;
  for (const std::string& file : read) {
    if (request.output.empty() || !std::filesystem::equivalent(request.output, file, ignored)) continue;
    diagnostics.error({}, "--output " + request.output + " is a file of the data, which it would replace",
                      "name another file");
    return true;
  }
  return false;
}

}  // namespace

std::optional<Evaluation> evaluate_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request,
                                              double peak_flops, core::Diagnostics& diagnostics) {
  auto loaded = load(recipe, request, diagnostics);
  if (!loaded) return std::nullopt;
  BatchProfile profile(*loaded, request, peak_flops);
  auto result = train::evaluate(*loaded->experiment, request.data, *loaded->data, loaded->options).value();
  profile.finish();
  return Evaluation{
      request.data,   loaded->checkpoint.path, loaded->checkpoint.step, samples_read(*loaded, result.samples),
      result.seconds, std::move(result.values)};
}

std::optional<PredictedSet> predict_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request,
                                               double peak_flops, PredictionSink& sink,
                                               core::Diagnostics& diagnostics) {
  auto loaded = load(recipe, request, diagnostics);
  if (!loaded || overwrites_data(*loaded->experiment, request, diagnostics)) return std::nullopt;
  BatchProfile profile(*loaded, request, peak_flops);
  const Predictor predictor(*loaded, request.input.empty());
  sink.begin(predictor.names());
  std::int64_t samples = 0;
  train::predict(*loaded->experiment, *loaded->data, loaded->options,
                 [&](std::int64_t first, const components::TensorMap& batch) {
                   const at::Tensor output = batch.at(components::kOutput).cpu();
                   const at::Tensor target = batch.at(components::kTarget).cpu();
                   for (std::int64_t i = 0; i < target.size(0); ++i, ++samples) {
                     sink.add(predictor.record(first + i, output[i], target[i]));
                   }
                 });
  profile.finish();
  return PredictedSet{samples_read(*loaded, samples), loaded->data->records(), loaded->data->files()};
}

}  // namespace runner::engine
