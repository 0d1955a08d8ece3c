#include "runner/engine/inspect.h"

#include <ATen/ops/max.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "components/tensor/tensors.h"
#include "generated/section/profiler.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/checkpoint_name.h"
#include "runner/artifact/provenance.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/suggest.h"
#include "runner/core/text.h"
#include "runner/store/run_files.h"
#include "runner/store/run_reader.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/observe/evaluator.h"
#include "runner/train/observe/profiler.h"
#include "runner/train/train.h"

namespace runner::engine {
namespace {

using core::Node;

/// The runs that a checkpoint's short name may refer to, newest first.
std::vector<store::RunSummary> candidate_runs(const resolve::Recipe& recipe, const EvalRequest& request) {
  const core::Clock& clock = core::system_clock();
  if (!request.run.empty()) {
    auto run = store::find_run(recipe.output_dir, request.run, clock);
    if (!run) throw core::RunError(run.failure().message, run.failure().hint, core::kExitUsage);
    return {std::move(run).value()};
  }
  std::vector<store::RunSummary> runs;
  for (auto& run : store::list_runs(recipe.output_dir, clock)) {
    if (run.name == recipe.run_name && !run.smoke) runs.push_back(std::move(run));
  }
  return runs;
}

std::string find_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request) {
  std::error_code ignored;
  if (std::filesystem::exists(request.checkpoint, ignored)) return request.checkpoint;
  for (store::RunSummary& run : candidate_runs(recipe, request)) {
    store::read_resolved(run);
    const artifact::RunCheckpoints checkpoints = artifact::checkpoints_of(run.run_dir, run.id, run.resolved);
    if (artifact::list_checkpoints(checkpoints.folder).empty()) continue;
    // Uses the newest run with checkpoints; an older one would be a surprise.
    std::vector<std::string> skipped;
    const auto found = artifact::find_checkpoint(checkpoints, request.checkpoint, skipped);
    for (const std::string& line : skipped) core::log_warning("skipped " + line);
    return found.value();
  }
  throw core::RunError("no run of run_name " + recipe.run_name + " in " + recipe.output_dir + " has a checkpoint",
                       "train it first with `roux run`, or give the path of a checkpoint folder", core::kExitUsage);
}

/// Warns of training data that the run did not see: what is derived from it may not fit the weights.
void check_training_data(const resolve::Recipe& recipe, const std::string& checkpoint) {
  const auto run_dir = std::filesystem::path(checkpoint).lexically_normal().parent_path().parent_path();
  const std::string provenance = store::branch_file(run_dir.string(), artifact::kProvenanceFile);
  if (provenance.empty()) return;
  const auto recorded = artifact::read_provenance(provenance);
  if (!recorded) return;
  const Node* type = recipe.root.at_path("data.train.type");
  const bool is_table = type != nullptr && type->scalar_text() == "csv_table";
  for (const artifact::DataFile& file : recorded.value().data) {
    if (file.set != "train" || file.checksum.empty()) continue;
    const auto seen = artifact::stat_data_file(file.set, file.path);
    if (!seen || (seen.value().bytes == file.bytes && seen.value().mtime_ns == file.mtime_ns)) continue;
    if (seen.value().bytes == file.bytes) {
      const auto read = artifact::read_data_file(file.set, file.path);
      if (!read || read.value().checksum == file.checksum) continue;
    }
    core::log_warning(file.path + " has changed since the run trained on it" +
                      (is_table ? "; classes and statistics are computed from it again" : ""));
  }
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
  if (std::find(names.begin(), names.end(), request.data) == names.end()) {
    const std::string near = core::closest(request.data, names);
    diagnostics.error(
        recipe.location("data"), "no data set is called \"" + request.data + "\"",
        (near.empty() ? "" : "did you mean \"" + near + "\"? ") + ("the recipe has " + core::joined(names)));
    return std::nullopt;
  }
  Loaded loaded;
  loaded.checkpoint = find_checkpoint(recipe, request);
  check_training_data(recipe, loaded.checkpoint);
  train::configure_torch(recipe);
  train::prepare_device(recipe);
  train::BuildOptions options;
  options.for_training = false;
  options.data_sets = {request.data};
  loaded.experiment = train::build_experiment(recipe, options, diagnostics);
  if (loaded.experiment == nullptr) return std::nullopt;
  loaded.data = loaded.experiment->find_data(request.data);
  const auto manifest = artifact::verify_checkpoint(loaded.checkpoint);
  manifest.value();
  checkpoint::load_weights(loaded.checkpoint, *loaded.experiment->model);
  const auto stepper = train::stepper_options(recipe);
  const auto& eval = recipe.eval;
  loaded.options.micro_batch_size = eval.micro_batch_size.value_or(stepper.loader.micro_batch_size);
  loaded.options.max_batches = eval.max_batches;
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
    auto& activities = loaded.experiment->recipe.profiler.activities;
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

Node list_of(const at::Tensor& values) {
  const at::Tensor flat = values.to(at::kDouble).contiguous();
  std::vector<Node> items;
  for (std::int64_t i = 0; i < flat.numel(); ++i) items.push_back(Node::floating(flat.const_data_ptr<double>()[i]));
  return Node::sequence(std::move(items));
}

void write_sample(std::FILE* file, std::int64_t index, const at::Tensor& output, const at::Tensor& target,
                  const components::loss::Loss& loss, bool classes) {
  Node line = Node::mapping();
  line.set("index", Node::integer(index));
  if (classes && output.dim() == 1) {
    const auto [probability, best] = at::max(at::softmax(output.to(at::kFloat), 0), 0);
    line.set("prediction", Node::integer(best.item<std::int64_t>()));
    line.set("probability", Node::floating(probability.item<double>()));
    line.set("target", Node::integer(target.item<std::int64_t>()));
  } else if (output.dim() <= 1) {
    line.set("prediction", list_of(output));
    line.set("target", list_of(target));
  } else {
    line.set("tokens", Node::integer(loss.count(target.unsqueeze(0))));
  }
  const double sum = loss.sum(output.unsqueeze(0), target.unsqueeze(0)).item<double>();
  line.set("loss",
           Node::floating(sum / static_cast<double>(std::max<std::int64_t>(1, loss.count(target.unsqueeze(0))))));
  std::fprintf(file, "%s\n", core::to_json(line, -1).c_str());
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
  auto loaded = load(recipe, request, diagnostics);
  if (!loaded) return core::kExitUsage;
  BatchProfile profile(*loaded, request, peak_flops);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> owned(nullptr, std::fclose);
  if (!request.output.empty()) {
    owned.reset(std::fopen(request.output.c_str(), "w"));
    if (owned == nullptr) throw core::RunError("cannot write " + request.output, "check that its folder exists");
  }
  std::FILE* file = owned != nullptr ? owned.get() : stdout;
  const bool classes = loaded->data->signature().num_classes > 0;
  std::int64_t samples = 0;
  train::predict(*loaded->experiment, *loaded->data, loaded->options,
                 [&](std::int64_t first, const components::TensorMap& batch) {
                   const at::Tensor output = batch.at(components::kOutput).cpu();
                   const at::Tensor target = batch.at(components::kTarget).cpu();
                   samples += target.size(0);
                   for (std::int64_t i = 0; i < target.size(0); ++i) {
                     write_sample(file, first + i, output[i], target[i], *loaded->experiment->loss, classes);
                   }
                 });
  profile.finish();
  if (std::fflush(file) != 0 || std::ferror(file) != 0) {
    throw core::RunError("cannot write " + (request.output.empty() ? "to standard output" : request.output) +
                         ": write failed");
  }
  if (!request.output.empty()) core::log_info("wrote " + request.output);
  if (samples < loaded->data->size()) core::log_warning("predicted " + samples_text(*loaded, samples));
  return core::kExitDone;
}

}  // namespace runner::engine
