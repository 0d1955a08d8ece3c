// N: pairs of a data set

#include "runner/train/reference/reference.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/section/teacher.h"
#include "runner/artifact/io/checksum.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/distributed/process_group.h"
#include "runner/resolve/reference_recipe.h"
#include "runner/train/data/referenced_data.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/observe/evaluator.h"
#include "runner/train/observe/signals.h"
#include "runner/train/reference/reference_file.h"
#include "runner/train/reference/reference_model.h"
#include "runner/train/step/step_reference.h"
#include "runner/train/step/unit_hooks.h"
#include "runner/train/step/without_adapters.h"

namespace runner::train {
namespace {

using components::data::Dataset;

constexpr std::int64_t kChecked = 256;             ///< pairs that are read at a time for the checksum
constexpr std::int64_t kTold_ns = 10'000'000'000;  ///< between two lines about the progress

/// Of all ids, targets and lengths: of what data, tokenizer and max_seq_len make together.
std::string checksum_of_pairs(const Dataset& pairs) {
  artifact::Checksum checksum;
  for (std::int64_t first = 0; first < pairs.size(); first += kChecked) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(kChecked, pairs.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    components::TensorMap batch;
    pairs.fetch(indices, batch);
    for (const char* name : {components::kInput, components::kTarget, components::kRejectedAt}) {
      const at::Tensor tensor = batch.at(name).contiguous();
      checksum.update(tensor.const_data_ptr(), static_cast<std::int64_t>(tensor.nbytes()));
    }
  }
  return checksum.text();
}

/// `24 pairs`
std::string counted_samples(const Dataset& pairs) {
  const bool are_records = pairs.signature().find(components::kDesirable) != nullptr;
  return core::counted(pairs.size(), are_records ? "record" : "pair", are_records ? "records" : "pairs");
}

EvalOptions pass_options(const Experiment& experiment) {
  const StepperOptions stepper = stepper_options(experiment.recipe);
  EvalOptions options;
  options.micro_batch_size = eval_micro_batch(experiment.recipe);
  options.autocast = stepper.autocast;
  options.num_workers = stepper.loader.num_workers;
  options.prefetch_factor = stepper.loader.prefetch_factor;
  options.rank_0_reads = stepper.loader.rank_0_reads;
  options.loss_alone = !options.autocast.by_block;  // the projection has the format of its block
  return options;
}

/// `reference`: whose model is asked. `experiment`: whose loss asks it.
class Pass {
 public:
  Pass(const Experiment& reference, const Experiment& experiment, const SignalWatch* signals)
      : reference_(reference), experiment_(experiment), signals_(signals) {}

  /// On all ranks.
  ReferenceFigures compute(const std::string& name, const Dataset& pairs) {
    const WithoutAdapters without(*reference_.model);
    const std::int64_t size = pairs.size();
    // Each rank fills in its own; the last row counts the ranks that were interrupted.
    at::Tensor figures_N2 = at::zeros({size + 1, 2}, at::kFloat);
    EvalOptions options = pass_options(experiment_);
    options.interrupted = [this] { return signals_ != nullptr && signals_->received() != nullptr; };
    const bool complete =
        predict(reference_, pairs, options, [&](std::int64_t first, const components::TensorMap& batch) {
          const components::Autocast autocast(options.loss_alone ? options.autocast : components::AutocastOptions{});
          const at::Tensor figures = experiment_.loss->reference_of(batch).cpu();
          figures_N2.narrow(0, first, figures.size(0)).copy_(figures);
          tell(name, first, pairs);
        });
    if (!complete) figures_N2[size].fill_(1.0);
    if (experiment_.ranks != nullptr)
      experiment_.ranks->begin_all_reduce(figures_N2, "the reference's figures")->wait();
    if (figures_N2[size][0].item<float>() != 0.0F) {
      throw core::RunError("stopped by a signal while computing the reference log-probabilities of data." + name,
                           "the same command computes them again", core::kExitResumable);
    }
    return split(figures_N2, size);
  }

 private:
  void tell(const std::string& name, std::int64_t done, const Dataset& pairs) {
    const std::int64_t now = core::system_clock().monotonic_ns();
    if (!experiment_.is_first() || now - told_ns_ < kTold_ns) return;
    told_ns_ = now;
    core::log_info("reference log-probabilities of data." + name + ": " + std::to_string(done) + " of " +
                   counted_samples(pairs));
  }

  static ReferenceFigures split(const at::Tensor& figures_N2, std::int64_t size) {
    ReferenceFigures figures;
    const float* value = figures_N2.const_data_ptr<float>();
    for (std::int64_t i = 0; i < size; ++i, value += 2) {
      figures.chosen.push_back(value[0]);
      figures.rejected.push_back(value[1]);
    }
    return figures;
  }

  const Experiment& reference_;
  const Experiment& experiment_;
  const SignalWatch* signals_;
  std::int64_t told_ns_ = core::system_clock().monotonic_ns();
};

class Preparation {
 public:
  Preparation(const Experiment& experiment, const ReferenceOptions& options)
      : experiment_(experiment), options_(options) {}

  void prepare(const std::string& name, ReferencedData& set) {
    const ReferenceOrigin origin{checksum_of_pairs(set.pairs()), checksum_of_model()};
    std::optional<ReferenceFigures> figures;
    std::string problem;
    if (experiment_.is_first()) {
      try {
        figures = read(name, origin, set.size());
      } catch (const core::RunError& error) {
        problem = std::string(error.what()) + "\n" + error.hint();
      }
    }
    if (experiment_.ranks != nullptr) problem = experiment_.ranks->from_rank_0(problem, "the reference's file");
    if (!problem.empty()) {
      const std::size_t end = problem.find('\n');
      throw core::RunError(problem.substr(0, end), problem.substr(end + 1), core::kExitUsage);
    }
    if (!share(figures, set.size())) {
      const std::int64_t begin_ns = core::system_clock().monotonic_ns();
      share_passes();
      figures = Pass(reference(), experiment_, options_.signals).compute(name, set.pairs());
      if (experiment_.is_first()) {
        if (!options_.evaluates && !options_.run_dir.empty()) {
          write_reference(path_in(options_.run_dir, name), origin, *figures);
        }
        const auto ns = static_cast<double>(core::system_clock().monotonic_ns() - begin_ns);
        core::log_info("computed the reference log-probabilities of " + counted_samples(set.pairs()) + " of data." +
                       name + " in " + core::format_duration(ns * 1e-9));
      }
    }
    set.set_figures(*std::move(figures));
  }

  /// For a training set that is a stream, and for a loss of outputs. A collective.
  std::shared_ptr<const StepReference> by_step() {
    if (is_own_reference(experiment_, /*trained=*/true)) {
      return std::make_shared<StepReference>(experiment_, nullptr, "");
    }
    build();
    std::string checksum = checksum_of_weights(*built_);
    if (experiment_.ranks != nullptr) checksum = experiment_.ranks->from_rank_0(checksum, "the reference's checksum");
    return std::make_shared<StepReference>(experiment_, std::move(built_), std::move(checksum));
  }

 private:
  static std::string path_in(const std::string& run_dir, const std::string& name) {
    return run_dir + "/reference/" + name + ".safetensors";
  }

  /// Of what a run begins with, on rank 0. A collective the first time.
  std::string checksum_of_model() {
    if (options_.evaluates || !options_.checkpoint.empty() || options_.run_dir.empty()) return "";
    if (!model_) model_ = checksum_of_weights(reference());
    return *model_;
  }

  /// Where processes divide the weights, they gather those of one block after the other; where one of them reads for
  /// all, not all make the same passes.
  void share_passes() {
    GradientStrategy* strategy = experiment_.strategy.get();
    if (&reference() != &experiment_ || strategy == nullptr || !strategy->wants_unit_hooks()) return;
    if (!hooks_) hooks_.emplace(*experiment_.model, strategy, nullptr);
    if (pass_options(experiment_).rank_0_reads) strategy->hold_weights();
  }

  /// The experiment whose model is the reference.
  const Experiment& reference() {
    if (is_own_reference(experiment_, options_.evaluates)) return experiment_;
    build();
    return *built_;
  }

  void build() {
    if (built_ != nullptr) return;
    core::Diagnostics diagnostics;
    built_ = build_reference_model(experiment_, /*on_meta=*/false, diagnostics);
    if (built_ != nullptr) return refuse_not_finite();
    const core::Diagnostic& first = diagnostics.all().front();
    throw core::RunError("the reference model: " + first.message, first.hint, core::kExitUsage);
  }

  /// What it says would be no number, and the loss of each step neither.
  void refuse_not_finite() const {
    for (const components::NamedTensor& parameter : built_->model->parameters()) {
      if (at::isfinite(parameter.tensor).all().item<bool>()) continue;
      const auto& teacher = experiment_.recipe.teacher;
      throw core::RunError("the reference model: " + parameter.name + (teacher ? " of " + teacher->init_from : "") +
                               " has numbers that are not finite",
                           teacher ? "name another folder, or export the teacher from an earlier checkpoint"
                                   : "begin with other weights",
                           core::kExitUsage);
    }
  }

  /// On rank 0. Nothing: they are to be computed.
  std::optional<ReferenceFigures> read(const std::string& name, const ReferenceOrigin& origin, std::int64_t size) {
    std::string path = path_in(options_.run_dir, name);
    bool is_there = !options_.run_dir.empty() && std::filesystem::exists(path);
    if (!is_there && !options_.checkpoint.empty()) {  // a run that begins with another's checkpoint
      const auto of_checkpoint = std::filesystem::path(options_.checkpoint).parent_path().parent_path();
      const std::string other = path_in(of_checkpoint.string(), name);
      is_there = std::filesystem::exists(other);
      if (is_there) path = other;
    }
    const bool resumes = !options_.evaluates && !options_.checkpoint.empty();
    if (resumes && !is_there) {
      throw core::RunError("the run has no reference log-probabilities of data." + name + ": " + path +
                               " does not exist, and the model has been trained since it began",
                           "restore the file, or start a new run with --new", core::kExitUsage);
    }
    if (!is_there) return std::nullopt;
    try {
      return read_reference(path, origin, size);
    } catch (const core::RunError& error) {
      if (resumes) throw;
      if (!options_.evaluates) core::log_info(std::string(error.what()) + "; they are computed again");
      return std::nullopt;
    }
  }

  /// Rank 0's figures on all ranks; false: it has none.
  bool share(std::optional<ReferenceFigures>& figures, std::int64_t size) const {
    if (experiment_.ranks == nullptr) return figures.has_value();
    at::Tensor flat = at::full({2 * size + 1}, figures ? 1.0 : 0.0, at::kFloat);
    auto* value = flat.mutable_data_ptr<float>();
    if (figures) {
      std::copy(figures->chosen.begin(), figures->chosen.end(), value);
      std::copy(figures->rejected.begin(), figures->rejected.end(), value + size);
    }
    experiment_.ranks->broadcast(flat, 0, "the reference's figures");
    if (value[2 * size] == 0.0F) return false;
    figures = ReferenceFigures{{value, value + size}, {value + size, value + 2 * size}};
    return true;
  }

  const Experiment& experiment_;
  const ReferenceOptions& options_;
  std::unique_ptr<Experiment> built_;  ///< where the reference is another model than the experiment's
  std::optional<std::string> model_;   ///< see checksum_of_model()
  std::optional<UnitHooks> hooks_;
};

ReferencedData* referenced(const std::shared_ptr<Dataset>& set) { return dynamic_cast<ReferencedData*>(set.get()); }

}  // namespace

bool needs_reference(const Experiment& experiment) {
  return referenced(experiment.train_data) != nullptr || refers_by_step(experiment) || compares_outputs(experiment);
}

void prepare_reference(Experiment& experiment, const ReferenceOptions& options) {
  Preparation preparation(experiment, options);
  const auto prepare = [&](const std::string& name, const std::shared_ptr<Dataset>& data) {
    if (!options.only.empty() && options.only != name) return;
    if (ReferencedData* set = referenced(data)) preparation.prepare(name, *set);
  };
  prepare("train", experiment.train_data);
  for (const NamedDataset& one : experiment.eval_data) prepare(one.name, one.data);
  if (experiment.step_reference != nullptr) return;
  const bool by_step = refers_by_step(experiment) && !options.evaluates;
  if (by_step || compares_outputs(experiment)) experiment.step_reference = preparation.by_step();
}

void check_teacher(Experiment& experiment, const std::string& checkpoint) {
  if (!experiment.recipe.teacher || !(refers_by_step(experiment) || compares_outputs(experiment))) return;
  const core::Node counters = checkpoint::load_counters(checkpoint);
  const core::Node* recorded = counters.find("reference");
  const ReferenceOptions options{.checkpoint = checkpoint};
  experiment.step_reference = Preparation(experiment, options).by_step();
  if (recorded != nullptr && recorded->is_string()) experiment.step_reference->expect(recorded->as_string());
}

PlannedReference plan_reference(const Experiment& experiment, core::Diagnostics& diagnostics) {
  if (!needs_reference(experiment)) return {};
  const bool by_step = refers_by_step(experiment) || compares_outputs(experiment);
  const std::string as_it_begins =
      experiment.adapters.empty() ? "the model as it begins" : "the model without its adapters";
  if (is_own_reference(experiment, /*trained=*/by_step)) return {.text = as_it_begins};
  const auto& teacher = experiment.recipe.teacher;
  if (resolve::is_teacher_elsewhere(experiment.recipe)) return {.text = teacher->init_from + ", which is not here yet"};
  const auto reference = build_reference_model(experiment, /*on_meta=*/true, diagnostics);
  if (reference == nullptr) return {};
  std::int64_t bytes = 0;
  for (const auto& parameter : reference->model->parameters())
    bytes += parameter.tensor.numel() * static_cast<std::int64_t>(parameter.tensor.element_size());
  const std::string whole = experiment.adapters.empty() ? as_it_begins : "the model before its adapters";
  return {.text = (teacher ? teacher->init_from : whole) + ", " +
                  core::format_count(static_cast<double>(reference->model->parameter_count())) + " parameters, " +
                  core::format_bytes(bytes) +
                  (by_step ? " in memory while training" : " in memory until it has computed"),
          .held_bytes = by_step ? bytes : 0};
}

}  // namespace runner::train
