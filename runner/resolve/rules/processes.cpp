#include "runner/resolve/rules/rules.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/units.h"

namespace runner::resolve {

using core::Node;

namespace {

constexpr const char* kShard = "parallelism.shard";
constexpr const char* kShardSize = "parallelism.dp_shard_size";
constexpr const char* kCopies = "parallelism.dp_replicate_size";
constexpr const char* kUnit = "parallelism.unit";
constexpr const char* kMinNumParams = "parallelism.min_num_params";
constexpr const char* kReplicate = "parallelism.replicate";
constexpr const char* kUnitBlocks = "parallelism.unit_blocks";
constexpr const char* kReshard = "parallelism.reshard_after_forward";
constexpr const char* kPrefetches[] = {"parallelism.forward_prefetch", "parallelism.backward_prefetch",
                                       "parallelism.prefetch_units"};

}  // namespace

/// Ranks are processes.
void sweep_isolation(SettledTree& tree) {
  const std::int64_t count = tree.integer("launch.num_processes").value_or(1);
  if (tree.text("sweep.isolation") != "none" || count == 1) return;
  tree.error("sweep.isolation", "isolation is none, but launch.num_processes is " + std::to_string(count),
             "use isolation: fork, or one process");
}

namespace {

/// Of a key about several processes, where there is one: whether the call alone asks for that. Whoever writes
/// `roux eval RUN --num-processes 1` knows what the recipe says of several, and a recorded run has every value.
bool is_for_other_calls(const SettledTree& tree, const std::string& path) {
  return tree.is_of_this_call("launch.num_processes") && !tree.is_of_this_call(path);
}

}  // namespace

/// Keys for whoever looks after several processes, and for several readers.
void one_process(SettledTree& tree) {
  if (tree.integer("launch.num_processes").value_or(1) > 1) return;
  for (const char* path : {"loader.split_batches", "loader.dispatch_batches", "loader.count_repeated_samples",
                           "ddp.broadcast_buffers", "checkpoint.save_on_each_node"}) {
    if (!tree.is_true(path) || !tree.written(path) || is_for_other_calls(tree, path)) continue;
    tree.warning(path, std::string(path) + " has no effect: there is one process", "leave it out");
  }
  if (tree.integer("launch.max_restarts").value_or(0) > 0 && !is_for_other_calls(tree, "launch.max_restarts")) {
    tree.warning("launch.max_restarts", "launch.max_restarts has no effect: one process has no supervisor",
                 "run the same command again to resume, or train with several processes");
  }
  const auto unused = [&](const char* path) {
    if (is_for_other_calls(tree, path)) return;
    tree.warning(path, std::string(path) + " has no effect: one process has no supervisor",
                 "remove it, or train with several processes");
  };
  if (tree.integer("launch.tee").value_or(0) > 0) unused("launch.tee");
  if (tree.given("launch.log_dir")) unused("launch.log_dir");
  for (const char* path : {"launch.enable_cpu_affinity", "launch.debug"}) {
    if (tree.is_true(path)) unused(path);
  }
}

namespace {

bool keeps_rows_of_gradients(const SettledTree& tree) {
  const std::string shard = tree.text(kShard).value_or("");
  return shard == "gradients" || shard == "parameters";
}

}  // namespace

/// By the recipe alone, not by the number of processes, which its hash does not count.
void exchanged_batches(SettledTree& tree) {
  const bool keeps_rows = keeps_rows_of_gradients(tree);
  tree.fill("accumulation.sync_each_batch", Node::boolean(keeps_rows),
            keeps_rows ? "parallelism.shard" : "default of accumulation",
            keeps_rows ? core::Origin::kSettled : core::Origin::kDefault);
}

/// Settings of the gradient exchange with a single process.
void exchanges(SettledTree& tree) {
  if (tree.integer("launch.num_processes").value_or(1) > 1) return;
  const auto unused = [&](const std::string& path) {
    if (is_for_other_calls(tree, path)) return;
    tree.warning(path, path + " has no effect: one process exchanges no gradients", "leave it out");
  };
  // What is sharded has a warning of its own.
  if (tree.is_true("accumulation.sync_each_batch") && !keeps_rows_of_gradients(tree))
    unused("accumulation.sync_each_batch");
  if (tree.text("ddp.comm_hook").value_or("no") != "no") unused("ddp.comm_hook");
  if (tree.given("local_sgd.local_sgd_steps")) unused("local_sgd.local_sgd_steps");
  // One process may resume what several recorded: their `gloo` is what `auto` was.
  if (tree.text("launch.backend") == "nccl") unused("launch.backend");
}

/// What needs gradients that all processes have in common, or weights that are the same after each step.
void local_sgd(SettledTree& tree) {
  if (!tree.given("local_sgd.local_sgd_steps") || tree.integer("launch.num_processes").value_or(1) == 1) return;
  const auto refuse = [&](const std::string& path, const std::string& why) {
    tree.error(path, path + " cannot be combined with local_sgd: " + why, "leave one of the two out");
  };
  for (const char* path : {"accumulation.sync_each_batch", "ddp.static_graph", "ddp.check_reduction"}) {
    if (tree.is_true(path) && tree.written(path)) refuse(path, "no gradients are exchanged");
  }
  if (tree.text("ddp.comm_hook").value_or("no") != "no") refuse("ddp.comm_hook", "no gradients are exchanged");
  const Node* unused = tree.value("ddp.find_unused_parameters");
  if (unused != nullptr && unused->is_bool() && !unused->as_bool()) {
    refuse("ddp.find_unused_parameters", "no gradients are exchanged");
  }
  for (const char* path : {"faults.on_nan", "faults.on_spike"}) {
    const std::string action = tree.text(path).value_or("");
    if (action == "skip" || action == "rollback") refuse(path, "processes would skip different steps");
  }
  const std::string mode = tree.text("precision.mode").value_or("");
  if (mode == "16-mixed") refuse("precision.mode", "processes would overflow at different steps");
  if (mode == "bf16-true") refuse("precision.mode", "the mean of bfloat16 weights is not representable");
  if (tree.text("weight_averaging.type")) refuse("weight_averaging", "each process has other weights to average");
}

namespace {

/// `sharded: true` where process 0 saves everything.
void no_parts(SettledTree& tree, const std::string& why, const std::string& hint) {
  const bool asked = tree.is_true("checkpoint.sharded") && tree.written("checkpoint.sharded");
  if (!asked || tree.is_of_this_call("launch.num_processes") || tree.is_of_this_call(kShard)) return;
  tree.warning("checkpoint.sharded", "checkpoint.sharded has no effect: " + why, hint);
}

bool has_items(const SettledTree& tree, const std::string& path) {
  const Node* list = tree.value(path);
  return list != nullptr && list->is_sequence() && !list->items().empty();
}

/// Not as it is by default.
bool is_other_prefetch(SettledTree& tree, const std::string& path) {
  if (path == kPrefetches[0]) return tree.value(path) != nullptr && !tree.is_true(path);
  if (path == kPrefetches[1]) return tree.text(path).value_or("before") != "before";
  return tree.integer(path).value_or(1) != 1;
}

Node usual_value(const std::string& path) {
  if (path == kReplicate || path == kUnitBlocks) return Node::sequence();
  if (path == kReshard || path == kPrefetches[0]) return Node::boolean(true);
  if (path == kPrefetches[1]) return Node::string("before");
  if (path == kPrefetches[2]) return Node::integer(1);
  return path == kUnit ? Node::string("block") : Node::null();
}

/// A key that does nothing beside one of `others`. Where the call overrides that one and not the key, as a resume may,
/// the key is left out.
void idle_beside(SettledTree& tree, const std::string& path, const std::vector<std::string>& others,
                 const std::string& error, const std::string& hint) {
  const auto cause =
      std::find_if(others.begin(), others.end(), [&tree](const auto& other) { return tree.is_of_this_call(other); });
  if (cause == others.end() || tree.is_of_this_call(path)) return tree.error(path, error, hint);
  // At the override: in a recorded run the key stands in a file that its author has not written.
  tree.warning(*cause, path + " has no effect with this " + *cause);
  tree.replace_idle(path, usual_value(path), "idle beside " + *cause);
}

/// Whether the sizes of copies and shards fit the processes.
void mesh_sizes(SettledTree& tree, std::int64_t processes) {
  auto copies = tree.integer(kCopies), shards = tree.integer(kShardSize);
  if (copies && shards && *copies * *shards != processes) {
    const bool keeps_shards = tree.is_of_this_call(kShardSize) && !tree.is_of_this_call(kCopies);
    idle_beside(tree, keeps_shards ? kCopies : kShardSize, {keeps_shards ? kShardSize : kCopies},
                "dp_replicate_size " + std::to_string(*copies) + " x dp_shard_size " + std::to_string(*shards) +
                    " is " + std::to_string(*copies * *shards) + ", but launch.num_processes is " +
                    std::to_string(processes),
                "leave one of the two out: it follows from the other");
    copies = tree.integer(kCopies);
    shards = tree.integer(kShardSize);
    if (copies && shards) return;
  }
  for (const auto& [path, size] : {std::pair(kCopies, copies), std::pair(kShardSize, shards)}) {
    if (!size || processes % *size == 0) continue;
    tree.error(path,
               std::string(path).substr(std::string_view("parallelism.").size()) + " is " + std::to_string(*size) +
                   ", which does not divide launch.num_processes " + std::to_string(processes),
               "use a divisor of it");
  }
}

/// What is gathered ahead, where parameters are gathered.
void prefetched_units(SettledTree& tree) {
  const bool forward = tree.is_true(kPrefetches[0]), keeps = !tree.is_true(kReshard);
  const bool backward = tree.text(kPrefetches[1]).value_or("") != "none";
  if (tree.text(kUnit) == "model") {
    for (const char* path : kPrefetches) {
      if (is_other_prefetch(tree, path))
        idle_beside(tree, path, {kUnit},
                    std::string(path) + " is about the next unit, and with unit: model there is one",
                    "write unit: block, or remove it");
    }
    return;
  }
  if (keeps && is_other_prefetch(tree, kPrefetches[1]))
    idle_beside(tree, kPrefetches[1], {kReshard},
                std::string(kPrefetches[1]) +
                    " has nothing to gather: with reshard_after_forward: false parameters stay until then",
                "leave one of the two out");
  if (!forward && (keeps || !backward) && is_other_prefetch(tree, kPrefetches[2]))
    idle_beside(tree, kPrefetches[2], {kPrefetches[0], keeps ? kReshard : kPrefetches[1]},
                "prefetch_units is how many units are gathered ahead, and none are",
                "remove it, or write forward_prefetch: true");
}

/// What is gathered at a time; `shard` is empty where nothing is sharded.
void gathered_units(SettledTree& tree, const std::string& shard) {
  if (shard == "parameters") {
    prefetched_units(tree);
    if (tree.text(kUnit) != "model") return;
    if (has_items(tree, kUnitBlocks))
      idle_beside(tree, kUnitBlocks, {kUnit},
                  "unit_blocks names blocks that are units, and with unit: model all are one unit",
                  "leave one of the two out");
    if (tree.integer(kMinNumParams))
      idle_beside(tree, kMinNumParams, {kUnit}, "min_num_params joins blocks, and with unit: model all are one unit",
                  "leave one of the two out");
    return;
  }
  const auto idle = [&](const std::string& path) {
    idle_beside(tree, path, {kShard},
                path + " is about gathered parameters, and " +
                    (shard.empty() ? "without shard" : "with shard: " + shard) + " every process holds all of them",
                "write shard: parameters, or remove it");
  };
  if (tree.given(kReshard) && !tree.is_true(kReshard)) idle(kReshard);
  if (tree.text(kUnit) == "model") idle(kUnit);
  if (tree.integer(kMinNumParams)) idle(kMinNumParams);
  for (const char* path : kPrefetches) {
    if (is_other_prefetch(tree, path)) idle(path);
  }
  if (has_items(tree, kUnitBlocks)) idle(kUnitBlocks);
}

/// Losses in 16 bits are other ones than without sharding: the reason is not to be looked for elsewhere. The shares are
/// those of SmolLM2 135M, two processes, after 8 steps.
void tell_rounding(SettledTree& tree, const std::string& shard) {
  const std::string mode = tree.text("precision.mode").value_or("");
  if (shard == "optimizer" || (mode != "bf16-mixed" && mode != "16-mixed")) return;
  const bool gathers = shard == "parameters", is_half = mode == "16-mixed";
  const std::string share = is_half   ? ""
                            : gathers ? ", by 0.5 % where it was measured"
                                      : ", by 0.1 % where it was measured";
  tree.notice(kShard,
              std::string(gathers ? "weights and gradients" : "gradients") + " travel in " +
                  (is_half ? "float16" : "bfloat16") + ", which moves losses" + share,
              "mode: 32-true gives those of one process to rounding");
}

}  // namespace

void parallelism(SettledTree& tree) {
  const auto shard = tree.text(kShard);
  const std::int64_t processes = tree.integer("launch.num_processes").value_or(1);
  if (!shard) {
    if (tree.was_refused(kShard)) return;
    for (const char* path : {kShardSize, kCopies}) {
      if (tree.written(path) && tree.integer(path).value_or(1) > 1)
        idle_beside(tree, path, {kShard}, std::string(path) + " is written, but nothing is sharded",
                    "write shard: optimizer beside it");
    }
    if (has_items(tree, kReplicate))
      idle_beside(tree, kReplicate, {kShard}, std::string(kReplicate) + " is about what is sharded, and nothing is",
                  "write shard: optimizer beside it, or remove it");
    if (processes > 1) no_parts(tree, "nothing is sharded", "write parallelism: {shard: optimizer}, or remove it");
    if (processes == 1) no_parts(tree, "there is one process", "remove it");
    gathered_units(tree, "");
    return;
  }
  if (processes == 1) {
    if (tree.written(kShard) && !is_for_other_calls(tree, kShard))
      tree.warning(kShard, "parallelism.shard has no effect: there is one process",
                   "remove it, or train with several processes");
    return;
  }
  // A recorded recipe writes the default down. Weights that are exported at the end are split all the same.
  if (tree.is_true("checkpoint.sharded") && tree.written("checkpoint.max_shard_size") &&
      tree.text("checkpoint.max_shard_size") != "10GB" && !tree.given("checkpoint.export"))
    tree.warning("checkpoint.max_shard_size",
                 "checkpoint.max_shard_size has no effect: with sharded each process writes one file",
                 "remove it, or write sharded: false");
  mesh_sizes(tree, processes);
  const auto copies = tree.integer(kCopies), shards = tree.integer(kShardSize);
  if (shards == 1 || (!shards && copies == processes))
    tree.warning(shards ? kShardSize : kCopies, "nothing is sharded: every process holds a copy of its own",
                 "use a larger dp_shard_size, or remove parallelism.shard");
  const auto refuse = [&](const std::string& path, const std::string& why, const std::string& hint) {
    tree.error(path, path + " cannot be combined with parallelism.shard: " + why, hint);
  };
  const char* const one_of_both = "leave one of the two out";
  gathered_units(tree, *shard);
  tell_rounding(tree, *shard);
  if (tree.given("local_sgd.local_sgd_steps"))
    refuse("local_sgd.local_sgd_steps", "each process would move other rows of other weights", one_of_both);
  if (tree.text("ddp.comm_hook").value_or("no") != "no")
    refuse("ddp.comm_hook", "what a hook sends is the whole of a gradient", one_of_both);
  if (tree.is_true("compile.cuda_graphs"))
    refuse("compile.cuda_graphs", "the weights are gathered after each step", one_of_both);
  if (tree.is_true("checkpoint.save_on_each_node"))
    refuse("checkpoint.save_on_each_node", "each machine would hold a part of the state",
           "remove it, and name a folder that all machines share as output_dir");
  if (*shard != "optimizer" && tree.is_true("ddp.check_reduction"))
    refuse("ddp.check_reduction", "no process has a whole gradient", one_of_both);
  const std::string optimizer = tree.text("optimizer.type").value_or("");
  const std::string update = tree.update_of(optimizer);
  if (update == "in-backward")
    refuse("optimizer.type", optimizer + " updates a parameter before the processes have added up its gradient",
           "use an optimizer such as adamw, lion or sgd");
  if (update == "whole-tensor" && *shard == "parameters")
    refuse("optimizer.type", optimizer + " updates whole tensors, and every process holds rows of them",
           "write shard: gradients, or use an optimizer such as adamw, lion or sgd");
}

/// What an approximation left out is added to the next gradient; a step that is taken back would leave its part there.
/// Where a gradient is not finite the exchange forgets by itself.
void error_feedback(SettledTree& tree) {
  const std::string hook = tree.text("ddp.comm_hook").value_or("no");
  if (tree.integer("launch.num_processes").value_or(1) == 1 || !hook.ends_with("power_sgd")) return;
  if (!tree.is_true("ddp.comm_state_option.use_error_feedback")) return;
  const auto refuse = [&](const char* path) {
    tree.error(path, std::string(path) + " undoes steps, but " + hook + " would keep their errors",
               "set use_error_feedback: false, use another comm_hook, or remove it");
  };
  if (tree.text("faults.on_spike") == "skip") refuse("faults.on_spike");
  if (tree.text("training.auto_micro_batch")) refuse("training.auto_micro_batch");
}

/// Generators that the training's device lacks.
void random_generators(SettledTree& tree) {
  const Node* types = tree.value("loader.rng_types");
  if (types == nullptr || !types->is_sequence() || tree.text("device") != "cpu") return;
  for (std::size_t i = 0; i < types->items().size(); ++i) {
    const std::string path = "loader.rng_types[" + std::to_string(i) + "]";
    if (tree.text(path) != "cuda") continue;
    tree.error(path, "rng_types lists cuda, but the training is on the CPU",
               "write torch, the generator of the CPU, or set device: cuda");
  }
}

/// NCCL connects GPUs.
void backend(SettledTree& tree) {
  const bool is_exchanged = tree.integer("launch.num_processes").value_or(1) > 1;
  if (!is_exchanged || tree.text("launch.backend") != "nccl" || tree.text("device") != "cpu") return;
  tree.error("launch.backend", "backend is nccl, but the training is on the CPU: NCCL connects GPUs",
             "write backend: auto, or set device: cuda");
}

void time_for_the_save(SettledTree& tree) {
  const Node* limit = tree.value("launch.time_limit");
  const Node* margin = tree.value("launch.save_margin");
  if (limit == nullptr || margin == nullptr) return;
  const core::Result<double> limit_s = core::parse_duration_s(limit->scalar_text());
  const core::Result<double> margin_s = core::parse_duration_s(margin->scalar_text());
  if (!limit_s || !margin_s || margin_s.value() < limit_s.value()) return;
  tree.error("launch.save_margin",
             "time_limit is " + limit->scalar_text() + ", of which save_margin reserves " + margin->scalar_text() +
                 ": no time is left for training",
             "use a longer time_limit, or a shorter save_margin");
}

}  // namespace runner::resolve
