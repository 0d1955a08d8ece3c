#include "runner/engine/inspect.h"

#include <ATen/ops/softmax.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "components/tensor/judged.h"
#include "components/tensor/tensors.h"
#include "generated/section/eval.h"
#include "generated/section/profiler.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/engine/prediction_file.h"
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
    constexpr auto kOwn = std::to_array<std::string_view>({"row", "line", "file", "index", "prediction", "probability",
                                                           "probabilities", "target", "loss", "tokens", "logits"});
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
  std::string checkpoint;
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
  const FoundCheckpoint checkpoint = find_checkpoint(recipe, request);
  loaded.checkpoint = checkpoint.path;
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
  checkpoint::load_weights(loaded.checkpoint, *loaded.experiment->model);
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

/// `160 samples`, or `16 of 160 samples: eval.max_batches is 1` if only a part was evaluated.
std::string samples_text(const Loaded& loaded, std::int64_t samples) {
  const std::int64_t all = loaded.data->size();
  if (samples >= all) return std::to_string(samples) + " samples";
  return std::to_string(samples) + " of " + std::to_string(all) + " samples: eval.max_batches is " +
         std::to_string(loaded.options.max_batches.value_or(0));
}

/// A number where the text is one as it would be written: 3 and 0.5, but not 007.
std::optional<Node> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || core::number_text(value) != text) return std::nullopt;
  std::int64_t whole = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (read.ec == std::errc() && read.ptr == end) return Node::integer(whole);
  return Node::floating(value);
}

/// Rows of `predict`.
class Predictor {
 public:
  /// `lists`: whether a row may hold lists of different lengths.
  Predictor(const Loaded& loaded, bool has_target, bool lists)
      : data_(*loaded.data),
        loss_(*loaded.experiment->loss),
        has_target_(has_target),
        lists_(lists),
        targets_(data_.target_names()) {
    const components::TensorSpec* target = data_.signature().find(components::kTarget);
    const std::int64_t classes = target != nullptr ? target->num_classes : 0;
    std::vector<Node> numbers;
    for (std::int64_t i = 0; i < classes; ++i) {
      names_.push_back(data_.class_name(i));
      if (const auto number = number_of(names_.back())) numbers.push_back(*number);
      labels_.push_back(Node::string(names_.back()));
    }
    // One type for all of them: "3" is text where another class is "none".
    if (numbers.size() == labels_.size()) labels_ = std::move(numbers);
  }

  /// Names of the tensors of a batch that row() takes.
  std::vector<std::string> reads() const {
    std::vector<std::string> names = loss_.reads();
    names.insert(names.end(), {components::kOutput, components::kTarget});
    return names;
  }

  /// `tensors`: what the loss reads, the output and the target, of one sample as a batch of one.
  Node row(std::int64_t index, const components::TensorMap& tensors) const {
    const at::Tensor output = tensors.at(components::kOutput)[0], target = tensors.at(components::kTarget)[0];
    Node row = Node::mapping();
    if (const auto record = data_.record_of(index)) {
      if (!record->file.empty()) row.set("file", Node::string(record->file));
      row.set(record->unit, Node::integer(record->number));
    } else {
      row.set("index", Node::integer(index));
    }
    const auto kept = data_.kept_of(index);
    // The target of new rows is kept as text and comes after the prediction.
    for (const auto& [name, text] : kept) {
      if (!is_target(name)) row.set(name, Node::string(text));
    }
    if (!labels_.empty() && output.dim() == 1) {
      add_class(row, output, target);
    } else if (output.dim() <= 1) {
      row.set("prediction", values_of(output));
      if (has_target_) row.set("target", values_of(target));
    } else {
      row.set("tokens", Node::integer(loss_.count(tensors)));
      const std::int64_t own = lists_ ? data_.predicted_positions(index) : 0;
      if (own > 0) row.set("logits", rows_of(output.narrow(0, 0, own)));
    }
    for (const auto& [name, text] : kept) {
      if (is_target(name)) row.set(name, text.empty() ? Node::null() : number_of(text).value_or(Node::string(text)));
    }
    if (!has_target_) return row;
    const double sum = loss_.sum(tensors).item<double>();
    row.set("loss", Node::floating(sum / static_cast<double>(std::max<std::int64_t>(1, loss_.count(tensors)))));
    return row;
  }

 private:
  bool is_target(const std::string& name) const { return !has_target_ && name.starts_with("target"); }

  void add_class(Node& row, const at::Tensor& output, const at::Tensor& target) const {
    const at::Tensor probabilities = at::softmax(output.to(at::kFloat), 0).to(at::kDouble).contiguous();
    const double* all = probabilities.const_data_ptr<double>();
    const auto best = static_cast<std::size_t>(std::max_element(all, all + probabilities.numel()) - all);
    const bool is_known = !std::isnan(all[best]);  // a softmax is NaN in all or none
    const Node label = best < labels_.size() ? labels_[best] : Node::integer(static_cast<std::int64_t>(best));
    row.set("prediction", is_known ? label : Node::null());
    row.set("probability", Node::floating(all[best]));
    if (has_target_) row.set("target", labels_.at(static_cast<std::size_t>(target.item<std::int64_t>())));
    Node of_classes = Node::mapping();
    for (std::size_t i = 0; i < names_.size(); ++i) of_classes.set(names_[i], Node::floating(all[i]));
    row.set("probabilities", std::move(of_classes));
  }

  /// A number; by name where there are several with names, else a list.
  Node values_of(const at::Tensor& values) const {
    const at::Tensor flat = values.to(at::kDouble).contiguous();
    const double* all = flat.const_data_ptr<double>();
    const auto count = static_cast<std::size_t>(flat.numel());
    if (count == 1 && targets_.size() == 1) return Node::floating(all[0]);
    if (count == targets_.size()) {
      Node named = Node::mapping();
      for (std::size_t i = 0; i < count; ++i) named.set(targets_[i], Node::floating(all[i]));
      return named;
    }
    std::vector<Node> items;
    for (std::size_t i = 0; i < count; ++i) items.push_back(Node::floating(all[i]));
    return Node::sequence(std::move(items));
  }

  /// One list for each position.
  static Node rows_of(const at::Tensor& values) {
    const at::Tensor flat = values.to(at::kDouble).contiguous();
    const double* next = flat.const_data_ptr<double>();
    std::vector<Node> rows;
    for (std::int64_t i = 0; i < flat.size(0); ++i) {
      std::vector<Node> row;
      for (std::int64_t j = 0; j < flat.numel() / flat.size(0); ++j) row.push_back(Node::floating(*next++));
      rows.push_back(Node::sequence(std::move(row)));
    }
    return Node::sequence(std::move(rows));
  }

  const components::data::Dataset& data_;
  const components::loss::Loss& loss_;
  bool has_target_, lists_;
  std::vector<std::string> targets_, names_;
  std::vector<Node> labels_;
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

/// Says that a set is a part of its file: it may have been meant as the whole.
void note_part(const Loaded& loaded, const EvalRequest& request) {
  const std::int64_t size = loaded.data->size(), records = loaded.data->records();
  if (!request.input.empty() || records <= size) return;
  const std::vector<std::string> files = loaded.data->files();
  core::log_info("data." + request.data + " is " + core::with_commas(size) + " of the " + core::with_commas(records) +
                 " rows of " + core::joined(files) + " (split or missing: drop); --input predicts all rows of a file");
}

}  // namespace

int evaluate_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request, double peak_flops,
                        core::Diagnostics& diagnostics) {
  auto loaded = load(recipe, request, diagnostics);
  if (!loaded) return core::kExitUsage;
  BatchProfile profile(*loaded, request, peak_flops);
  const auto result = train::evaluate(*loaded->experiment, request.data, *loaded->data, loaded->options).value();
  profile.finish();
  if (request.json) {
    Node line = Node::mapping();
    line.set("checkpoint", Node::string(loaded->checkpoint));
    line.set("data", Node::string(request.data));
    line.set("samples", Node::integer(result.samples));
    for (const auto& [name, value] : result.values) line.set(name, Node::floating(value));
    std::printf("%s\n", core::to_json(line, -1).c_str());
    return core::kExitDone;
  }
  std::printf("%s on %s (%s)\n", loaded->checkpoint.c_str(), request.data.c_str(),
              samples_text(*loaded, result.samples).c_str());
  for (const auto& [name, value] : result.values) std::printf("  %-14s %.6g\n", name.c_str(), value);
  return core::kExitDone;
}

int predict_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request, double peak_flops,
                       core::Diagnostics& diagnostics) {
  PredictionFile file(request.output, request.format);
  auto loaded = load(recipe, request, diagnostics);
  if (!loaded || overwrites_data(*loaded->experiment, request, diagnostics)) return core::kExitUsage;
  const auto outputs = loaded->experiment->model->outputs();
  const components::Judged judged{outputs, loaded->data->signature(), recipe.model, diagnostics};
  if (!judged.have({components::kOutput, components::kTarget})) return core::kExitUsage;
  BatchProfile profile(*loaded, request, peak_flops);
  const Predictor predictor(*loaded, request.input.empty(), request.format != "csv");
  train::predict(*loaded->experiment, *loaded->data, loaded->options,
                 [&](std::int64_t first, const components::TensorMap& batch) {
                   const components::TensorMap read = on_cpu(batch, predictor.reads());
                   for (std::int64_t i = 0; i < read.at(components::kTarget).size(0); ++i) {
                     file.add(predictor.row(first + i, sample_of(read, i)));
                   }
                 });
  profile.finish();
  file.finish();
  const std::string what = core::counted_large(file.rows(), "row", "rows");
  if (!request.output.empty()) core::log_info("wrote " + what + " to " + request.output);
  note_part(*loaded, request);
  if (file.rows() < loaded->data->size()) core::log_warning("predicted " + samples_text(*loaded, file.rows()));
  return core::kExitDone;
}

}  // namespace runner::engine
