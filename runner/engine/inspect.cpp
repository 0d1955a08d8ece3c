#include "runner/engine/inspect.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "components/tensor/judged.h"
#include "components/tensor/preferences.h"
#include "components/tensor/questions.h"
#include "components/tensor/tensors.h"
#include "generated/section/eval.h"
#include "generated/section/init_from.h"
#include "generated/section/profiler.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/init_from.h"
#include "runner/core/log.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/distributed/process_group.h"
#include "runner/engine/look_at_data.h"
#include "runner/engine/rank_messages.h"
#include "runner/engine/run_record.h"
#include "runner/engine/source/source_weights.h"
#include "runner/train/data/label_kind.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/observe/evaluator.h"
#include "runner/train/observe/profiler.h"
#include "runner/train/observe/span_answers.h"
#include "runner/train/rank_consistency.h"
#include "runner/train/reference/reference.h"
#include "runner/train/step/step_reference.h"
#include "runner/train/strategy/rank_differences.h"
#include "runner/train/train.h"

namespace runner::engine {
namespace {

using components::data::LabelKind;
using core::Node;

constexpr double kLikely = 0.5;  ///< a class that is more likely is one of several

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
  if (!request.input.empty() && request.returns == "loss") {
    diagnostics.error({}, "--return loss: the targets of new rows are not read",
                      "add the file to the recipe as a data set, and predict it with --data");
  }
  if (kind == "csv_table") return !diagnostics.has_errors();
  const LabelKind labels = train::label_kind(recipe);
  if (labels == LabelKind::kRewards && (request.returns == "probabilities" || request.returns == "labels")) {
    diagnostics.error({}, "--return " + request.returns + ": a reward is none of several classes",
                      "remove --return, or write --return logits");
  }
  if (have_vectors(labels) && !request.returns.empty() && request.returns != "embeddings") {
    diagnostics.error({}, "--return " + request.returns + ": the model's head gives vectors of texts",
                      "remove --return, or write --return embeddings");
  }
  if (labels == LabelKind::kSpans &&
      (request.returns == "probabilities" || request.returns == "labels" || request.returns == "embeddings")) {
    diagnostics.error({}, "--return " + request.returns + ": the model's head tells beginnings and ends of answers",
                      "remove --return, or write --return logits");
  }
  const bool tells_texts =
      kind == "jsonl" && (are_targets(labels) || have_vectors(labels) || labels == LabelKind::kRewards);
  if (!request.input.empty() && !tells_texts) {
    diagnostics.error(
        recipe.location("data.train"),
        "--input needs a table (csv_table) or texts that a head judges (jsonl), and data.train is of type " + kind +
            (kind == "jsonl" ? " without such a head" : ""),
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

/// Ranks that see different files would wait for each other.
void check_equal_data(distributed::ProcessGroup& ranks, const components::data::Dataset& data,
                      const EvalRequest& request) {
  const std::string what =
      request.input.empty() ? "the samples of data." + request.data : "the rows of " + request.input;
  train::check_ranks_agree(ranks, {{what, std::to_string(data.size())}}, "data", "all machines need the same files");
}

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
  train::configure_torch(recipe);
  const auto ranks = train::join_process_group(recipe, request.rank, recipe.device);
  Loaded loaded;
  const bool foreign = names_foreign_weights(request.checkpoint);
  if (foreign) {
    loaded.checkpoint.path = request.checkpoint;
  } else {
    loaded.checkpoint = find_checkpoint(recipe, request, ranks.get());
  }
  const FoundCheckpoint& checkpoint = loaded.checkpoint;
  if (!foreign && !fits_recorded_recipe(recipe, checkpoint, request, diagnostics)) return std::nullopt;
  if (!foreign && !fits_recorded_table(recipe, checkpoint, diagnostics)) return std::nullopt;
  const int local_rank = request.rank ? request.rank->local_rank : 0;
  train::prepare_device(recipe, local_rank);
  train::BuildOptions options;
  options.for_training = false;
  options.weights_follow = true;
  options.local_rank = local_rank;
  options.ranks = ranks;
  options.data_sets = {request.data};
  options.new_rows = request.input;
  options.keep = request.keep;
  loaded.experiment = train::build_experiment(recipe, options, diagnostics);
  if (loaded.experiment == nullptr) {
    if (!foreign) note_folder(recipe, checkpoint, diagnostics);
    return std::nullopt;
  }
  if (!foreign && !fits_recorded_files(*loaded.experiment, checkpoint, diagnostics)) return std::nullopt;
  loaded.data = loaded.experiment->find_data(request.input.empty() ? request.data : train::kNewRows);
  if (loaded.data->is_stream()) {
    diagnostics.error(recipe.location("data." + request.data + ".streaming"),
                      "data." + request.data + " is a stream, which has no end", "name another data set with --data");
    return std::nullopt;
  }
  if (ranks != nullptr) check_equal_data(*ranks, *loaded.data, request);
  if (foreign) {
    if (!load_foreign(request.checkpoint, recipe, *loaded.experiment, diagnostics)) return std::nullopt;
  } else if (!request.adapters.empty()) {
    if (!load_below_adapter(checkpoint.path, recipe, *loaded.experiment, diagnostics)) return std::nullopt;
  } else {
    checkpoint::load_weights(checkpoint.path, *loaded.experiment->model, recipe.init_from->path.value_or(""),
                             train::weight_access(*loaded.experiment));
  }
  if (train::needs_reference(*loaded.experiment)) {
    train::prepare_reference(*loaded.experiment, {.checkpoint = foreign ? "" : checkpoint.path,
                                                  .evaluates = true,
                                                  .only = request.input.empty() ? request.data : train::kNewRows});
  }
  const auto stepper = train::stepper_options(recipe);
  loaded.options.micro_batch_size = train::eval_micro_batch(recipe);
  const auto& most = recipe.eval->max_batches;
  if (most && request.input.empty()) loaded.options.max_samples = train::counted_samples(recipe, *most);
  loaded.options.autocast = stepper.autocast;
  loaded.options.num_workers = stepper.loader.num_workers;
  loaded.options.prefetch_factor = stepper.loader.prefetch_factor;
  loaded.options.rank_0_reads = stepper.loader.rank_0_reads;
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
  return {samples, loaded.data->size(), loaded.experiment->recipe.eval->max_batches};
}

/// Makes records of a model's outputs.
class Predictor {
 public:
  Predictor(const Loaded& loaded, const EvalRequest& request)
      : data_(*loaded.data),
        loss_(loaded.experiment->loss->of_samples()),
        returns_(request.returns),
        labels_(train::label_kind(loaded.experiment->recipe)),
        names_{train::class_names(data_), data_.target_names(), request.input.empty()} {
    if (labels_ == LabelKind::kClasses) names_.classes = train::names_of_several(data_);
    const bool is_one_value = labels_ == LabelKind::kValues && data_.signature().at(components::kTarget).shape[1] == 1;
    if (is_one_value) names_.targets = {"label"};
    are_pairs_ = data_.signature().find(components::kRejectedAt) != nullptr;
    if (are_pairs_ && names_.targets.empty()) names_.targets = {"chosen", "rejected"};
  }

  const PredictionNames& names() const { return names_; }

  /// Names of the tensors of a batch that record() takes.
  std::vector<std::string> reads() const {
    std::vector<std::string> names = loss_.reads();
    names.emplace_back(components::kOutput);
    if (data_.signature().find(components::kTarget) != nullptr) names.emplace_back(components::kTarget);
    if (returns_hidden()) names.emplace_back(components::kHidden);
    return names;
  }

  /// Whether `--return embeddings` asks for what the output is a projection of, and not for the output itself.
  bool returns_hidden() const { return returns_ == "embeddings" && !have_vectors(labels_); }

  /// Without what name_sample() adds. `tensors`: what the loss reads, the output and the target, of one sample as a
  /// batch of one.
  Prediction record(std::int64_t index, const components::TensorMap& tensors) const {
    Prediction made;
    made.index = index;
    if (!returns_.empty()) {
      add_tensor(made, tensors);
      return made;
    }
    const at::Tensor output = tensors.at(components::kOutput)[0];
    if (have_vectors(labels_)) {
      made.kind = Prediction::Kind::kVectors;
      made.values = numbers(output);
      made.shape = output.sizes().vec();
      // A loss of other pairs of the batch says nothing of one.
      if (labels_ == LabelKind::kScores && names_.has_target) {
        made.targets = numbers(tensors.at(components::kTarget)[0]);
        made.loss = mean_loss(tensors);
      }
      return made;
    }
    const at::Tensor target = tensors.at(components::kTarget)[0];
    if (labels_ == LabelKind::kClasses) {
      add_classes(made, output, target);
    } else if (labels_ == LabelKind::kTags) {
      add_tags(made, output, target);
    } else if (!names_.classes.empty() && output.dim() == 1) {
      add_class(made, output, target);
    } else if (output.dim() <= 1) {
      made.kind = Prediction::Kind::kValues;
      made.values = numbers(output);
      if (are_pairs_) made.values.resize(names_.targets.size());  // new texts are each by itself
      if (names_.has_target && !are_pairs_) made.targets = numbers(target);
    } else {
      made.kind = Prediction::Kind::kTokens;
      made.tokens = loss_.count(tensors);
    }
    if (names_.has_target) made.loss = mean_loss(tensors);
    return made;
  }

  /// Adds which record of the data it is, and the columns to copy.
  void name_sample(Prediction& made) const {
    if (!returns_.empty()) return;
    if (auto record = data_.record_of(made.index)) {
      made.unit = record->unit;
      made.number = record->number;
      made.file = std::move(record->file);
    }
    made.kept = data_.kept_of(made.index);
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

  /// Each of the classes by itself.
  void add_classes(Prediction& made, const at::Tensor& output, const at::Tensor& target) const {
    made.kind = Prediction::Kind::kClasses;
    made.probabilities = numbers(at::sigmoid(output.to(at::kFloat)));
    const std::vector<double> targets = numbers(target);
    for (std::size_t i = 0; i < made.probabilities.size(); ++i) {
      if (made.probabilities[i] > kLikely) made.classes.push_back(static_cast<std::int64_t>(i));
      if (names_.has_target && targets[i] > kLikely) made.target_classes.push_back(static_cast<std::int64_t>(i));
    }
  }

  /// Of the tokens that have a tag, which are the first of each word.
  void add_tags(Prediction& made, const at::Tensor& output, const at::Tensor& target) const {
    made.kind = Prediction::Kind::kTags;
    const at::Tensor best = at::argmax(output, -1);
    for (std::int64_t i = 0; i < target.size(0); ++i) {
      const auto wanted = target[i].item<std::int64_t>();
      if (wanted == components::kPadTarget) continue;
      made.classes.push_back(best[i].item<std::int64_t>());
      if (names_.has_target) made.target_classes.push_back(wanted);
    }
  }

  /// Over the values or tokens that count; by a loss that counts none, 0.
  double mean_loss(const components::TensorMap& tensors) const {
    std::vector<std::int64_t> counts = loss_.counts(tensors);
    counts.front() = std::max<std::int64_t>(1, counts.front());
    return components::loss::mean_of(loss_.sums(tensors), counts);
  }

  /// What `--return` asks for: of a text its own positions, without the padding.
  void add_tensor(Prediction& made, const components::TensorMap& tensors) const {
    made.kind = Prediction::Kind::kTensor;
    if (returns_ == "loss") {
      made.values = {mean_loss(tensors)};
      return;
    }
    at::Tensor values = tensors.at(returns_hidden() ? components::kHidden : components::kOutput)[0];
    const std::int64_t own = data_.predicted_positions(made.index);
    if (own > 0 && values.dim() > 1) {
      values = values.narrow(0, filled_in_front(data_, values.size(0), own), own);
    }
    if (returns_ == "probabilities") values = at::softmax(values.to(at::kFloat), -1);
    if (returns_ == "labels") values = at::argmax(values, -1);
    made.shape = values.sizes().vec();
    made.whole = returns_ == "labels";
    made.values = numbers(values);
  }

  static std::vector<double> numbers(const at::Tensor& values) {
    const at::Tensor flat = values.to(at::kDouble).contiguous();
    const double* all = flat.const_data_ptr<double>();
    return {all, all + flat.numel()};
  }

  const components::data::Dataset& data_;
  const components::loss::Loss& loss_;
  std::string returns_;
  LabelKind labels_;
  bool are_pairs_ = false;  ///< of texts, of which a model may give each a value
  PredictionNames names_;
};

/// Brings the predictions of all ranks to the sink of rank 0, in the order of the set and batch by batch: a rank waits
/// with the next batch until rank 0 has come to the last one.
class PredictionCollector {
 public:
  /// `ranks` null: this process makes all of them.
  PredictionCollector(const Predictor& predictor, distributed::ProcessGroup* ranks, PredictionSink& sink)
      : predictor_(predictor), ranks_(ranks), sink_(sink) {}

  bool is_first() const { return ranks_ == nullptr || ranks_->rank() == 0; }
  /// That the sink got.
  std::int64_t samples() const { return samples_; }

  void add_batch(std::int64_t first, const components::TensorMap& batch) {
    const components::TensorMap read = on_cpu(batch, predictor_.reads());
    const std::int64_t count = read.at(components::kOutput).size(0);
    std::string bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      Prediction made = predictor_.record(first + i, sample_of(read, i));
      is_first() ? add(std::move(made)) : append(bytes, made);
    }
    if (!is_first()) send_bytes(*ranks_, 0, bytes, kSite);
  }

  /// On rank 0: the next batch is that of another rank.
  void receive_batch(int rank, std::int64_t count) {
    const std::string bytes = receive_bytes(*ranks_, rank, kSite);
    std::size_t at = 0;
    for (std::int64_t i = 0; i < count; ++i) add(prediction_at(bytes, at));
  }

 private:
  static constexpr const char* kSite = "the predictions";

  void add(Prediction made) {
    predictor_.name_sample(made);
    sink_.add(made);
    ++samples_;
  }

  const Predictor& predictor_;
  distributed::ProcessGroup* ranks_;
  PredictionSink& sink_;
  std::int64_t samples_ = 0;
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

/// Whether the model's last block has something before its projection.
bool gives_embeddings(const train::Experiment& experiment, core::Diagnostics& diagnostics) {
  if (experiment.model->gives_hidden()) return true;
  diagnostics.error(experiment.recipe.model.location(), "--return embeddings: this model has none before its output",
                    "use --return logits");
  return false;
}

}  // namespace

std::optional<Evaluation> evaluate_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request,
                                              double peak_flops, core::Diagnostics& diagnostics) {
  auto loaded = load(recipe, request, diagnostics);
  if (!loaded) return std::nullopt;
  loaded->options.loss_alone = true;
  BatchProfile profile(*loaded, request, peak_flops);
  auto result = train::evaluate(*loaded->experiment, request.data, *loaded->data, loaded->options).value();
  profile.finish();
  return Evaluation{
      request.data,   loaded->checkpoint.path, loaded->checkpoint.step, samples_read(*loaded, result.samples),
      result.seconds, std::move(result.values)};
}

namespace {

/// Gives the sink of rank 0 an answer to each question, from all of its windows. Returns the number of windows.
std::int64_t predict_answers(const Loaded& loaded, bool has_target, PredictionSink& sink) {
  const train::Experiment& experiment = *loaded.experiment;
  const components::data::Questions& questions = *loaded.data->questions();
  train::SpanAnswers answers(questions);
  train::predict(experiment, *loaded.data, loaded.options,
                 [&](std::int64_t first, const components::TensorMap& batch) { answers.add(first, batch); });
  if (experiment.ranks != nullptr) answers.join(*experiment.ranks);
  if (experiment.rank() != 0) return 0;
  sink.begin({{}, {}, has_target});
  std::int64_t told = 0, window = 0;
  for (std::size_t i = 0; i < questions.all.size(); ++i) {
    while (questions.windows[static_cast<std::size_t>(window)].question < i) ++window;
    const auto answer = answers.answer_to(i);
    if (!answer) continue;
    Prediction made;
    made.kind = Prediction::Kind::kAnswer;
    made.index = static_cast<std::int64_t>(i);
    if (const auto record = loaded.data->record_of(window)) {
      made.unit = record->unit;
      made.number = record->number;
      made.file = record->file;
    }
    if (!questions.all[i].id.empty()) made.kept.emplace_back("id", questions.all[i].id);
    made.answer = answer->text;
    made.probability = answer->score;
    if (has_target) made.answers = questions.all[i].answers;
    sink.add(made);
    ++told;
  }
  return told;
}

}  // namespace

std::optional<PredictedSet> predict_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request,
                                               double peak_flops, PredictionSink& sink,
                                               core::Diagnostics& diagnostics) {
  auto loaded = load(recipe, request, diagnostics);
  if (!loaded || overwrites_data(*loaded->experiment, request, diagnostics)) return std::nullopt;
  const auto outputs = loaded->experiment->model->outputs();
  const components::Judged judged{outputs, loaded->data->signature(), recipe.model, diagnostics};
  const LabelKind labels = train::label_kind(recipe);
  if (!judged.have({components::kOutput})) return std::nullopt;
  if (labels != LabelKind::kTexts && !judged.have({components::kTarget})) return std::nullopt;
  loaded->options.with_hidden = request.returns == "embeddings" && !have_vectors(labels);
  if (loaded->options.with_hidden && !gives_embeddings(*loaded->experiment, diagnostics)) return std::nullopt;
  BatchProfile profile(*loaded, request, peak_flops);
  if (labels == LabelKind::kSpans && request.returns.empty()) {
    if (loaded->data->questions() == nullptr) {
      diagnostics.error(recipe.location("data"), "answers are texts, and ids have none",
                        "add --return logits, or use data of type jsonl");
      return std::nullopt;
    }
    const std::int64_t told = predict_answers(*loaded, request.input.empty(), sink);
    profile.finish();
    const auto questions = std::ssize(loaded->data->questions()->all);
    return PredictedSet{{told, questions, loaded->experiment->recipe.eval->max_batches},
                        loaded->data->records(),
                        loaded->data->files()};
  }
  const Predictor predictor(*loaded, request);
  PredictionCollector collector(predictor, loaded->experiment->ranks.get(), sink);
  if (collector.is_first()) {
    sink.begin(predictor.names());
    loaded->options.other_batch = [&](int rank, std::int64_t count) { collector.receive_batch(rank, count); };
  }
  train::predict(*loaded->experiment, *loaded->data, loaded->options,
                 [&](std::int64_t first, const components::TensorMap& read) {
                   components::TensorMap batch = read;
                   if (train::compares_outputs(*loaded->experiment)) {
                     loaded->experiment->step_reference->add_outputs(batch, loaded->options.autocast, true);
                   }
                   collector.add_batch(first, batch);
                 });
  profile.finish();
  return PredictedSet{samples_read(*loaded, collector.samples()), loaded->data->records(), loaded->data->files()};
}

}  // namespace runner::engine
