#pragma once

#include <string>
#include <vector>

#include "runner/resolve/rules/settled_tree.h"

// The rules between sections. Each reads a validated recipe, settles what its author left open, and reports what does
// not fit together. runner/resolve/consistency.cpp says in which order they apply.

namespace runner::resolve {

/// The names of the data sets other than `train`.
std::vector<std::string> evaluated_sets(const SettledTree& tree);

// The data sets.
void train_set(SettledTree& tree);
void data_set_names(SettledTree& tree);
void held_out(SettledTree& tree);
void streamed_sets(SettledTree& tree);
void transforms(SettledTree& tree);

// What is trained, for how long, and how.
void one_limit(SettledTree& tree);
void compat(SettledTree& tree);
void total_steps(SettledTree& tree);
void precision_keys(SettledTree& tree);
void cuda_graphs(SettledTree& tree);
void cuda_graphs_need_a_gpu(SettledTree& tree);
void one_average(SettledTree& tree);
void micro_batch_can_shrink(SettledTree& tree);
void somewhere_to_roll_back_to(SettledTree& tree);
void init_from_source(SettledTree& tree);
void init_from_rename(SettledTree& tree);
void adapters(SettledTree& tree);
void quantization(SettledTree& tree);
void placement_words(SettledTree& tree);

/// A recipe whose tokenizers give other tokens the ids that rows of its weights have is refused: those of `init_from`
/// and of adapters, where a tokenizer lies beside them. Rows that the recipe draws are not compared, and a recipe that
/// was recorded is not: its training has taken the weights.
void weight_tokenizers(SettledTree& tree);
/// The same of other weights, a folder or a file.
void check_tokenizers(const core::Node& recipe, const std::string& weights, core::Diagnostics& diagnostics);

// The metrics that are measured, and what names one of them.
void metric_directions(SettledTree& tree);
void sweep_metric(SettledTree& tree);
void metric_once(SettledTree& tree);
void metrics_of_texts(SettledTree& tree);
void monitored_metric(SettledTree& tree);
void monitor_needs_evaluation(SettledTree& tree);
void something_to_evaluate(SettledTree& tree);

// Several processes, and the time they have.
void sweep_isolation(SettledTree& tree);
void one_process(SettledTree& tree);
void exchanged_batches(SettledTree& tree);
void exchanges(SettledTree& tree);
void local_sgd(SettledTree& tree);
void parallelism(SettledTree& tree);
void error_feedback(SettledTree& tree);
void time_for_the_save(SettledTree& tree);
void random_generators(SettledTree& tree);
void backend(SettledTree& tree);

// The name of the run, and what is written beside it.
void run_name_words(SettledTree& tree);
void tracker_names(SettledTree& tree);
void tracker_places(SettledTree& tree);
void profiler_activities(SettledTree& tree);

/// A recipe that was downloaded, or extends a file that was, starts no programs of its author.
void programs(SettledTree& tree);

/// micro_batch_size x gradient_accumulation_steps x launch.num_processes = global_batch_size. Two of the three give the
/// third; one size alone means an accumulation of 1. Where a global batch of whole micro-batches does not divide by the
/// processes, some make one micro-batch less than that.
void batch_algebra(SettledTree& tree);

/// Sizes of batches that results depend on, from sizes that the recipe writes: what is computed follows the number of
/// processes. Recorded ones stay. Of the batches that `eval.max_batches` counts,
void counted_batch(SettledTree& tree);
/// and of those whose running statistics `update_bn` takes.
void bn_batch(SettledTree& tree);

/// `launch.num_processes: auto` becomes a number: a process for each GPU of each machine.
void automatic_processes(SettledTree& tree);

/// The rules about several machines: their `launch` settings must be consistent, and `launch.num_machines` follows from
/// `launch.hosts`.
void machines(SettledTree& tree);

/// A GPU for each process. What does not work on a GPU yet is refused: limits of the CPU's memory.
void gpus(SettledTree& tree);

}  // namespace runner::resolve
