#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/platform/connect_nccl.h"
#include "runner/core/rank_info.h"
#include "runner/core/result.h"
#include "runner/engine/data_view.h"
#include "runner/engine/memory/memory_plan.h"
#include "runner/engine/memory/size_estimate.h"
#include "runner/engine/texts/generation.h"
#include "runner/train/experiment/train_request.h"
#include "runner/train/lr_range_test.h"
#include "runner/train/save/resume_contract.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::engine {

struct BlockPlan {
  std::string name, output;
  std::int64_t parameters = 0, trained = 0;
};

struct DataPlan {
  std::string name, description;
  std::int64_t samples = 0, tokens_per_sample = 0;
  double unigram_entropy = 0;  ///< nats per token; NaN if undefined
};

/// Bytes of a process's weights, gradients and optimizer state; see train/experiment/memory/model_state.h.
struct HeldState {
  std::int64_t weights = 0, gradients = 0, optimizer = 0, total = 0;
};

/// What each process holds of the model by what its processes shard.
struct StatePlan {
  int processes = 1;                ///< that share a copy
  int stage = 0;                    ///< the recipe's
  std::vector<HeldState> by_stage;  ///< nothing, optimizer, gradients, parameters; empty: there is one process
};

/// A flat parameter of FSDP 1; see train/experiment/memory/flat_parameters.h. Counts are elements; `aligned` with
/// `use_orig_params`.
struct FlatUnitPlan {
  std::string path;  ///< "": the model
  std::int64_t elements = 0, own_elements = 0;
  std::vector<std::int64_t> padding;  ///< by process
  std::int64_t aligned_elements = 0, aligned_own_elements = 0;
  std::vector<std::int64_t> aligned_padding;
};

struct FlatPlan {
  int processes = 1;  ///< that share a flat parameter
  std::vector<FlatUnitPlan>
      units;  ///< empty: the recipe is not one of Accelerate's, or shards neither gradients nor parameters
};

struct PlanRequest {
  std::int64_t gpu_memory_bytes = 0;  ///< of the smallest GPU that the training uses; 0: unknown, or the CPU trains
  /// Reads the recipe with these changes, too; nothing where that is no valid one. What does not fit is planned with
  /// changes then. No function: nothing is tried.
  std::function<std::optional<resolve::Recipe>(const Changes&)> with_changes = nullptr;
};

/// The result of `plan`: from the meta device and the data's headers, without running anything.
struct Plan {
  std::vector<BlockPlan> blocks;
  std::vector<DataPlan> data;
  std::int64_t parameters = 0, trained_parameters = 0;
  std::int64_t steps = 0, samples = 0, tokens = 0;
  std::int64_t steps_per_epoch = 0;
  double epochs = 0;
  std::int64_t micro_batch_size = 0, gradient_accumulation_steps = 0, global_batch_size = 0;
  std::int64_t num_processes = 1;
  std::string precision;          ///< precision.mode
  std::string fastest_precision;  ///< on this processor; "" where a GPU trains
  MemoryPlan memory;
  Remedies remedies;  ///< where that does not fit
  StatePlan state;
  FlatPlan flat;
  std::int64_t checkpoint_bytes = 0, checkpoints_kept = 0;
  std::int64_t checkpoints_at_once = 0;  ///< peak while one is written
  std::int64_t disk_free_bytes = 0;      ///< free space of output_dir's disk
  std::string saved, kept;               ///< schedule and retention of checkpoints, in words
  double flops_per_step = 0;
  std::string step_wait;  ///< why the CPU waits for the GPU in every step; "" where it does not, or without a GPU
  std::string init_from;  ///< source of the initial weights, in one line; "" when they are drawn
  std::string reference;  ///< what the loss compares the model with, in one line; "" where it compares with none
  std::string placement;  ///< which blocks are where, in one line; "" where all are on the device
};

using TrainRequest = train::TrainRequest;
using train::LrPoint;
using train::LrRangeRequest;
using train::LrRangeTest;

struct EvalRequest {
  /// `best`, `last`, `step-000500` (in the newest run of the recipe's run_name), or a path: of a checkpoint, or of
  /// weights that are no checkpoint of roux, such as a folder of Transformers or a safetensors file.
  std::string checkpoint;
  std::string run;  ///< run; "" is the newest one with checkpoints
  std::vector<std::string> adapters =
      {};  ///< folders of PEFT that are added to those weights; the recipe names them, too
  std::string data = "val";
  std::string command = "eval";        ///< the word for hints
  std::string input = {};              ///< predict: a file of new rows instead of `data`; "": none
  std::vector<std::string> keep = {};  ///< predict: columns to copy to the output
  std::string output = {};             ///< predict: a file that is written to, refused if it is one of the data
  std::string returns = {};  ///< predict: `logits`, `probabilities`, `embeddings`, `labels`, `loss`; "": the usual rows
  std::string profile;       ///< folder for a profile of some batches; "" for none
  std::vector<std::string> gpu_names = {};  ///< of the GPUs that this process sees, as core::gpu_peak() knows them
  /// Among the processes that share out the batches; nothing: a single process.
  std::optional<core::RankInfo> rank = {};
};

/// Which part of a data set was read.
struct SamplesRead {
  std::int64_t samples = 0;                 ///< that were read
  std::int64_t of_set = 0;                  ///< that the set has
  std::optional<std::int64_t> max_batches;  ///< `eval.max_batches`; nothing: all of it was to be read
};

/// The result of `evaluate`.
struct Evaluation {
  std::string set;
  std::string checkpoint;  ///< its folder
  std::int64_t step = 0;   ///< of the checkpoint
  SamplesRead read;
  double seconds = 0;                                   ///< without loading
  std::vector<std::pair<std::string, double>> metrics;  ///< `loss` first, then those of the recipe, in its order
};

/// What all predictions of a set have in common.
struct PredictionNames {
  std::vector<std::string> classes;  ///< of Prediction::probabilities; empty: the set has no classes
  std::vector<std::string> targets;  ///< of Prediction::values, where there are as many; may be empty
  bool has_target = true;  ///< false: rows without a known target, which is among the kept fields if it is there
};

/// The prediction for one sample.
struct Prediction {
  /// kClasses: any number of classes; kTags: a class of each word; kTokens: a text, of which only the loss is told;
  /// kAnswer: the text of an answer; kVectors: one of each text of a record; kTensor: what EvalRequest::returns asks
  /// for.
  enum class Kind { kClass, kClasses, kTags, kValues, kTokens, kAnswer, kVectors, kTensor };

  std::int64_t index = 0;  ///< in the set
  std::string unit;        ///< `row` or `line`: what `number` counts; "" if the sample is not a record of a file
  std::int64_t number = 0;
  std::string file;                                       ///< of the record; "" where the set has one file
  std::vector<std::pair<std::string, std::string>> kept;  ///< EvalRequest::keep, as text
  Kind kind = Kind::kValues;
  // kClass
  std::optional<std::int64_t> predicted;  ///< a class; nothing where the probabilities are NaN
  std::int64_t target = 0;                ///< with PredictionNames::has_target
  double probability = 0;                 ///< of `predicted`; of kAnswer its score; of kAnswer its score
  std::vector<double> probabilities;      ///< by class; of kClasses, too, each by itself
  // kClasses and kTags
  std::vector<std::int64_t> classes = {}, target_classes = {};  ///< `target_classes`: with PredictionNames::has_target
  // kValues
  std::vector<double> values, targets;  ///< `targets`: with PredictionNames::has_target
  // kVectors, kTensor: `values` in this shape; a scalar has none
  std::vector<std::int64_t> shape = {};
  bool whole = false;  ///< the values are integers
  // kAnswer
  std::string answer = {};
  std::vector<std::string> answers = {};  ///< the right ones, with PredictionNames::has_target
  // kTokens
  std::int64_t tokens = 0;
  std::optional<double> loss;  ///< mean over the sample's values or tokens; with PredictionNames::has_target
};

/// Gets the predictions of a set, in its order, while they are made.
class PredictionSink {
 public:
  virtual ~PredictionSink() = default;
  /// Once, before the first.
  virtual void begin(const PredictionNames& names) = 0;
  virtual void add(const Prediction& prediction) = 0;
};

/// The result of `predict`, without the predictions.
struct PredictedSet {
  SamplesRead read;
  std::int64_t records = 0;  ///< of its files; more than `read.of_set` where the set leaves some out
  std::vector<std::string> files;
};

struct Versions {
  std::string libtorch, cpu_capability;
  std::string fastest_precision;  ///< on this processor: the mode of `precision`
  int threads = 0;
};

struct MachineLimits {
  std::string cpu;
  int threads = 1;
  double matmul_fp32_flops = 0, matmul_bf16_flops = 0;  ///< per second
  double memory_bytes_per_s = 0, disk_write_bytes_per_s = 0;
  std::string doubt;  ///< where a measurement contradicts what roux takes for the fastest format; "" elsewhere
};

/// Keeps GPU 0 from what is given to it next for this time; returns at once.
using HoldGpu = std::function<void(std::chrono::milliseconds)>;

/// The engine's interface for the torch-free program. Every call reports wrong shapes, vocabulary and data as
/// diagnostics.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::optional<Plan> plan(const resolve::Recipe& recipe, const PlanRequest& request,
                                   core::Diagnostics& diagnostics) = 0;
  /// What the recipe's model holds, and what a training of samples of one length takes; its data sets are not read.
  virtual std::optional<SizeEstimate> estimate_sizes(const resolve::Recipe& recipe, const SizeRequest& request,
                                                     core::Diagnostics& diagnostics) = 0;
  /// Trains; returns the exit status. `diagnostics` gets errors before the first step.
  virtual int train(const resolve::Recipe& recipe, const TrainRequest& request, core::Diagnostics& diagnostics) = 0;
  /// Runs the one-time initialization for all trainings of this process and its forks, on one thread and without
  /// gradients: a fork has none of LibTorch's threads.
  virtual void warm_up() = 0;
  /// Runs the learning-rate range test; touches no run. Nothing when `diagnostics` got errors.
  virtual std::optional<LrRangeTest> find_lr(const resolve::Recipe& recipe, const LrRangeRequest& request,
                                             core::Diagnostics& diagnostics) = 0;
  /// Loss and metrics of one data set under a checkpoint's weights. Nothing when `diagnostics` got errors. All ranks of
  /// a request get the same.
  virtual std::optional<Evaluation> evaluate(const resolve::Recipe& recipe, const EvalRequest& request,
                                             core::Diagnostics& diagnostics) = 0;
  /// Hands the predictions of a data set, or of the request's file, to `sink`; passes on what it throws. Of several
  /// ranks the sink of rank 0 gets all of them, and the others' none. Nothing when `diagnostics` got errors, and then
  /// `sink` got nothing either.
  virtual std::optional<PredictedSet> predict(const resolve::Recipe& recipe, const EvalRequest& request,
                                              PredictionSink& sink, core::Diagnostics& diagnostics) = 0;
  /// Hands a text for each sample of each prompt to `sink`; passes on what it throws. `recipe.generation` says how they
  /// are made, and may be null: the defaults. Nothing when `diagnostics` got errors.
  virtual std::optional<GenerationReport> generate(const resolve::Recipe& recipe, const GenerateRequest& request,
                                                   GenerationSink& sink, core::Diagnostics& diagnostics) = 0;
  /// The same for several calls. Null when `diagnostics` got errors.
  virtual std::unique_ptr<TextGenerator> open_generator(const resolve::Recipe& recipe, const GenerateRequest& request,
                                                        core::Diagnostics& diagnostics) = 0;
  /// Samples of a data set as training reads them; no model is built. Nothing when `diagnostics` got errors.
  virtual std::optional<DataView> view_data(const resolve::Recipe& recipe, const DataRequest& request,
                                            core::Diagnostics& diagnostics) = 0;
  /// The first records of files that data of type jsonl read, at most `count`, as they are written. Nothing when
  /// `diagnostics` got errors: no such file, or one of its first lines is no object.
  virtual std::optional<std::vector<core::Node>> first_records(const std::vector<std::string>& paths,
                                                               std::int64_t count, core::Diagnostics& diagnostics) = 0;
  /// Figures of a whole data set, likewise.
  virtual std::optional<DataStats> data_stats(const resolve::Recipe& recipe, const DataRequest& request,
                                              core::Diagnostics& diagnostics) = 0;
  /// Serves the rendezvous store on a listening socket until this process is killed.
  virtual void host_store(int listening, std::uint16_t port) = 0;
  /// Tests everything that training does with other ranks; see engine/self_test.h.
  virtual std::vector<std::string> self_test(const core::RankInfo& info, double timeout_s) = 0;
  /// Tests NCCL on GPU 0; see engine/self_test.h.
  virtual std::vector<std::string> self_test_nccl(core::ConnectNccl connect, const HoldGpu& hold) = 0;
  virtual MachineLimits measure(const std::string& scratch_dir) = 0;
  /// The environment in which this recipe would be trained here.
  virtual train::ArithmeticEnvironment environment(const resolve::Recipe& recipe) = 0;
  virtual Versions versions() const = 0;
};

/// Loads libroux_engine.so (beside this program: ../lib) on first use; 0.15 s. The failure names what could not be
/// loaded.
core::Result<Engine*> load_engine();

}  // namespace runner::engine
