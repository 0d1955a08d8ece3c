// N: pairs of a data set

#include "runner/train/reference/reference.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "components/part/linear.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/section/eval.h"
#include "runner/artifact/io/checksum.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/distributed/process_group.h"
#include "runner/train/data/referenced_data.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/observe/evaluator.h"
#include "runner/train/observe/signals.h"
#include "runner/train/reference/reference_file.h"

namespace runner::train {
namespace {

using components::data::Dataset;

constexpr std::int64_t kChecked = 256;             ///< pairs that are read at a time for the checksum
constexpr std::int64_t kTold_ns = 10'000'000'000;  ///< between two lines about the progress

/// The model without its adapters while it lives.
class WithoutAdapters {
 public:
  explicit WithoutAdapters(const components::model::Model& model) : model_(model) { leave_out(true); }
  ~WithoutAdapters() { leave_out(false); }
  WithoutAdapters(const WithoutAdapters&) = delete;
  WithoutAdapters& operator=(const WithoutAdapters&) = delete;

 private:
  void leave_out(bool leave_out) const {
    for (const auto& block : model_.blocks()) {
      for (const components::part::NamedLinear& named : block->linears()) named.linear->leave_out_terms(leave_out);
    }
  }

  const components::model::Model& model_;
};

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

EvalOptions pass_options(const Experiment& experiment) {
  const StepperOptions stepper = stepper_options(experiment.recipe);
  EvalOptions options;
  options.micro_batch_size = experiment.recipe.eval->micro_batch_size.value_or(stepper.loader.micro_batch_size);
  options.autocast = stepper.autocast;
  options.num_workers = stepper.loader.num_workers;
  options.prefetch_factor = stepper.loader.prefetch_factor;
  options.rank_0_reads = stepper.loader.rank_0_reads;
  options.loss_alone = !options.autocast.by_block;  // the projection has the format of its block
  return options;
}

class Pass {
 public:
  Pass(const Experiment& experiment, const SignalWatch& signals) : experiment_(experiment), signals_(signals) {}

  /// On all ranks.
  ReferenceFigures compute(const std::string& name, const Dataset& pairs) {
    const WithoutAdapters reference(*experiment_.model);
    const std::int64_t size = pairs.size();
    // Each rank fills in its own; the last row counts the ranks that were interrupted.
    at::Tensor figures_N2 = at::zeros({size + 1, 2}, at::kFloat);
    EvalOptions options = pass_options(experiment_);
    options.interrupted = [this] { return signals_.received() != nullptr; };
    const bool complete =
        predict(experiment_, pairs, options, [&](std::int64_t first, const components::TensorMap& batch) {
          const components::Autocast autocast(options.loss_alone ? options.autocast : components::AutocastOptions{});
          const at::Tensor figures = experiment_.loss->reference_of(batch).cpu();
          figures_N2.narrow(0, first, figures.size(0)).copy_(figures);
          tell(name, first, size);
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
  void tell(const std::string& name, std::int64_t done, std::int64_t size) {
    const std::int64_t now = core::system_clock().monotonic_ns();
    if (!experiment_.is_first() || now - told_ns_ < kTold_ns) return;
    told_ns_ = now;
    core::log_info("reference log-probabilities of data." + name + ": " + std::to_string(done) + " of " +
                   core::counted(size, "pair", "pairs"));
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

  const Experiment& experiment_;
  const SignalWatch& signals_;
  std::int64_t told_ns_ = core::system_clock().monotonic_ns();
};

class Preparation {
 public:
  Preparation(const Experiment& experiment, const ReferenceOptions& options)
      : experiment_(experiment), options_(options) {}

  void prepare(const std::string& name, ReferencedData& set) const {
    const std::string checksum = checksum_of_pairs(set.pairs());
    const std::string path = options_.run_dir + "/reference/" + name + ".safetensors";
    std::optional<ReferenceFigures> figures;
    std::string problem;
    if (experiment_.is_first()) {
      try {
        figures = read(name, path, checksum, set.size());
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
      figures = Pass(experiment_, options_.signals).compute(name, set.pairs());
      if (experiment_.is_first()) {
        write_reference(path, checksum, *figures);
        const auto ns = static_cast<double>(core::system_clock().monotonic_ns() - begin_ns);
        core::log_info("computed the reference log-probabilities of " + core::counted(set.size(), "pair", "pairs") +
                       " of data." + name + " in " + core::format_duration(ns * 1e-9));
      }
    }
    set.set_figures(*std::move(figures));
  }

 private:
  /// Nothing: they are to be computed.
  std::optional<ReferenceFigures> read(const std::string& name, const std::string& path, const std::string& checksum,
                                       std::int64_t size) const {
    if (std::filesystem::exists(path)) return read_reference(path, checksum, size);
    if (!options_.resumes) return std::nullopt;
    throw core::RunError("the run has no reference log-probabilities of data." + name + ": " + path +
                             " does not exist, and the model has been trained since it began",
                         "restore the file, or start a new run with --new", core::kExitUsage);
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
};

ReferencedData* referenced(const std::shared_ptr<Dataset>& set) { return dynamic_cast<ReferencedData*>(set.get()); }

}  // namespace

bool needs_reference(const Experiment& experiment) { return referenced(experiment.train_data) != nullptr; }

void prepare_reference(const Experiment& experiment, const ReferenceOptions& options) {
  const Preparation preparation(experiment, options);
  if (ReferencedData* set = referenced(experiment.train_data)) preparation.prepare("train", *set);
  for (const NamedDataset& one : experiment.eval_data) {
    if (ReferencedData* set = referenced(one.data)) preparation.prepare(one.name, *set);
  }
}

}  // namespace runner::train
