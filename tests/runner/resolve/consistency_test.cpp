#include "runner/resolve/consistency.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"
#include "runner/resolve/recipe.h"
#include "tests/support/paths.h"

namespace runner::resolve {
namespace {

struct Settled {
  core::Node root;
  std::string messages;
};

Settled settled(const std::string& yaml, int gpus = 0) {
  core::Diagnostics diagnostics;
  auto source = std::make_shared<core::Source>(core::Source{"r.yaml", yaml, core::Source::Kind::kFile});
  auto composed = recipe::compose_text(source, {}, diagnostics);
  REQUIRE(composed.has_value());
  Settled result;
  result.root = registry::validate_recipe(composed->root, registry::Registry::builtin(), diagnostics);
  const auto target_of = [](const std::string& kind, const std::string& type) {
    const runner::registry::Fragment* fragment = runner::registry::Registry::builtin().find(kind, type);
    return fragment != nullptr ? fragment->target : std::string();
  };
  const auto metrics_of = [target_of](const std::string& target) {
    std::vector<std::string> names = runner::registry::Registry::builtin().names("metric");
    std::erase_if(names, [&](const std::string& name) { return target_of("metric", name) != target; });
    return names;
  };
  settle(result.root, diagnostics,
         {.target_of = target_of, .metrics_of = metrics_of, .usable_gpus = [gpus] { return gpus; }});
  diagnostics.sort();
  core::RenderOptions options;
  options.excerpts = false;
  result.messages = core::render(diagnostics, options);
  return result;
}

const std::string kParts =
    "model: {type: mlp, hidden: [8]}\n"
    "loss: mse\n"
    "optimizer: sgd\n";
const std::string kData =
    "data: {train: {type: synthetic, task: regression}, val: {type: synthetic, task: regression}}\n";
const std::string kStream =
    "tokenizer: {type: file, path: t.json}\n"
    "data: {train: {type: jsonl, path: a.jsonl, streaming: true}}\n";
const std::string kGpt2 = tests::source_dir() + "/tests/components/tokenizer/files/gpt2.json";
const std::string kOtherTokenizer = "tokenizer: {type: file, path: " + kGpt2 + "}\n";
const std::string kWeights = tests::source_dir() + "/recipes/examples/data";  // weights would lie there, too
const std::string kBatch = "training: {max_steps: 10, micro_batch_size: 4}\n";

TEST_CASE("what is sharded exchanges gradients after each micro-batch unless the recipe says otherwise",
          "[recipe][consistency]") {
  const auto each = [](const std::string& keys) {
    const core::Node root = settled(kParts + kData + kBatch + keys + "\n").root;
    const core::Node* value = root.at_path("accumulation.sync_each_batch");
    REQUIRE(value != nullptr);
    return value->as_bool();
  };
  CHECK(!each(""));
  CHECK(!each("launch: {num_processes: 2}"));
  const std::string two = "launch: {num_processes: 2}\nparallelism: {shard: ";
  CHECK(!each(two + "optimizer}"));
  CHECK(each(two + "optimizer}\naccumulation: {sync_each_batch: true}"));
  CHECK(each(two + "gradients}"));
  CHECK(each(two + "parameters}"));
  CHECK(!each(two + "parameters}\naccumulation: {sync_each_batch: false}"));
}

TEST_CASE("each rule between sections reports what it found", "[recipe][consistency]") {
  struct Case {
    const char* rule;
    const char* name;
    std::string yaml;
    std::string messages;
  };
  const Case cases[] = {
      {"automatic_processes", "settles without a word", kParts + kData + kBatch + "launch: {num_processes: auto}\n",
       ""},
      {"automatic_processes", "another word is refused before",
       kParts + kData + kBatch + "launch: {num_processes: all}\n",
       "r.yaml:6:25: error: launch.num_processes must be an integer or auto, got \"all\"\n"},
      {"train_set", "no data set is called train",
       kParts + kBatch + "data: {trian: {type: synthetic, task: regression}}\n",
       "r.yaml:5:7: error: data needs a data set called train, it has trian\n  hint: rename trian to train\n"},
      {"train_set", "no data set at all", kParts + kBatch + "data: {}\n",
       "r.yaml:5:7: error: data needs a data set called train\n  hint: add train: {type: text, path: ...}\n"},
      {"data_set_names", "a name that would break the names of metrics",
       kParts + kBatch +
           "data: {train: {type: synthetic, task: regression}, a/b: {type: synthetic, task: regression}}\n",
       "r.yaml:5:52: error: the name of a data set must be letters, digits, '_' and '-', got \"a/b\"\n"
       "  hint: metrics are called NAME/loss after it\n"},
      {"run_name_words", "the newest run is called so already", kParts + kData + kBatch + "run_name: last\n",
       "r.yaml:6:11: error: run_name must not be \"last\": commands use it for the newest or the best\n"
       "  hint: choose another name, such as last-1\n"},
      {"one_average", "an optimizer that averages itself",
       "model: {type: mlp, hidden: [4]}\nloss: mse\noptimizer: adamw_schedule_free\n" + kData + kBatch +
           "weight_averaging: ema\n",
       "r.yaml:6:19: error: weight_averaging averages the weights, and so does optimizer adamw_schedule_free itself\n"
       "  hint: remove weight_averaging, or use adamw or sgd\n"},
      {"one_limit", "no limit", kParts + kData + "training: {micro_batch_size: 4}\n",
       "r.yaml:5:11: error: training needs a limit: max_steps, max_epochs, max_tokens or max_time\n"
       "  hint: write training: {max_steps: 1000, ...}; the first limit reached ends the run\n"},
      {"one_limit", "a limit that was refused is no missing limit",
       kParts + kData + "training: {micro_batch_size: 4, max_steps: 0}\n",
       "r.yaml:5:44: error: training.max_steps must be at least 1, got 0\n"
       "  hint: without a limit of this kind, leave the key out; max_steps, max_epochs, max_tokens or max_time ends "
       "the "
       "training\n"},
      {"batch_algebra", "a contradiction",
       kParts + kData +
           "training:\n  max_steps: 10\n  micro_batch_size: 8\n  gradient_accumulation_steps: 3\n  global_batch_size: "
           "32\n",
       "r.yaml:9:22: error: global_batch_size is 32, but micro_batch_size 8 (line 7) x gradient_accumulation_steps 3 "
       "(line 8) is 24\n  hint: give two of the three; the third follows\n"},
      {"batch_algebra", "no whole accumulation",
       kParts + kData + "training: {max_steps: 10, micro_batch_size: 8, global_batch_size: 30}\n",
       "r.yaml:5:67: error: global_batch_size is 30, which is not a multiple of micro_batch_size 8 (line 5), so there "
       "is "
       "no "
       "whole gradient_accumulation_steps\n  hint: the nearest that do are 24 and 32\n"},
      {"batch_algebra", "smaller than one micro-batch",
       kParts + kData + "training: {max_steps: 10, micro_batch_size: 8, global_batch_size: 4}\n",
       "r.yaml:5:67: error: global_batch_size is 4, which is not a multiple of micro_batch_size 8 (line 5), so there "
       "is "
       "no "
       "whole gradient_accumulation_steps\n  hint: the smallest that does is 8\n"},
      {"batch_algebra", "no size", kParts + kData + "training: {max_steps: 10, gradient_accumulation_steps: 4}\n",
       "r.yaml:5:11: error: training needs micro_batch_size or global_batch_size\n"
       "  hint: gradient_accumulation_steps alone does not determine the samples of a step\n"},
      {"batch_algebra", "a product beyond 64 bits",
       kParts + kData +
           "training: {max_steps: 10, micro_batch_size: 4611686018427387904, gradient_accumulation_steps: 4}\n",
       "r.yaml:5:45: error: micro_batch_size 4611686018427387904 (line 5) x gradient_accumulation_steps 4 (line 5) is "
       "too large\n"},
      // What they say of a recorded run is in written_batches_test.cpp.
      {"counted_batch", "sizes of a recipe", kParts + kData + kBatch + "eval: {max_batches: 3}\n", ""},
      {"bn_batch", "sizes of a recipe", kParts + kData + kBatch + "weight_averaging: {type: swa, start_step: 1}\n", ""},
      {"total_steps", "time alone does not say how many steps",
       kParts + kData + "training: {max_time: 1h, micro_batch_size: 4}\nlr_scheduler: cosine\n",
       "r.yaml:6:15: error: lr_scheduler (cosine) needs total_steps: training has max_time only, which does not "
       "determine the number of steps\n  hint: write lr_scheduler.total_steps, or training.max_steps in addition to "
       "max_time\n"},
      {"metric_once", "a metric twice", kParts + kData + kBatch + "eval: {metrics: [mse, mse]}\n",
       "r.yaml:6:23: error: eval.metrics has mse twice\n  hint: keep one of them\n"},
      {"metrics_of_texts", "texts that are not generated", kParts + kData + kBatch + "eval: {metrics: [rouge]}\n",
       "r.yaml:6:18: error: rouge judges texts that the model generates, and eval has no generate\n"
       "  hint: add eval: {generate: {max_new_tokens: 64}}\n"},
      {"monitored_metric", "a bare metric",
       kParts + kData + kBatch + "eval: {eval_steps: 5}\ncheckpoint: {save_best: true, monitor: loss}\n",
       "r.yaml:7:40: error: checkpoint.monitor must be a data set and a metric, as in val/loss, got \"loss\"\n"
       "  hint: write val/loss\n"},
      {"monitored_metric", "a misspelt data set",
       kParts + kData + kBatch + "eval: {eval_steps: 5}\ncallbacks: [{type: early_stopping, monitor: vla/loss}]\n",
       "r.yaml:7:45: error: callbacks[0].monitor is vla/loss, but there is no data set called \"vla\"\n"
       "  hint: did you mean val/loss?\n"},
      {"monitored_metric", "a metric that is not measured",
       kParts + kData + kBatch + "eval: {eval_steps: 5}\ncheckpoint: {save_best: true, monitor: val/r2}\n",
       "r.yaml:7:40: error: checkpoint.monitor is val/r2, but only loss is measured\n"
       "  hint: add it to eval.metrics: [r2]\n"},
      {"monitored_metric", "a metric of classes beside values",
       kParts + kData + kBatch + "eval: {eval_steps: 5}\ncheckpoint: {save_best: true, monitor: val/accuracy}\n",
       "r.yaml:7:40: error: checkpoint.monitor is val/accuracy, but only loss is measured\n"
       "  hint: it can be val/loss, or with eval.metrics mae, mse, pearson, r2, rmse or spearman\n"},
      {"monitored_metric", "the training set is not evaluated",
       kParts + kData + kBatch + "eval: {eval_steps: 5}\ncheckpoint: {save_best: true, monitor: train/loss}\n",
       "r.yaml:7:40: error: checkpoint.monitor is train/loss, but train is not evaluated\n  hint: write val/loss\n"},
      {"monitor_needs_evaluation", "nothing is evaluated before the end",
       kParts + kData + kBatch + "checkpoint: {save_best: true, monitor: val/loss}\n",
       "r.yaml:6:40: error: checkpoint.monitor is val/loss, but nothing is evaluated before the end\n"
       "  hint: set the interval with eval.eval_steps\n"},
      {"monitor_needs_evaluation", "a plateau is never looked for",
       kParts + kData + kBatch + "lr_scheduler: {type: plateau, monitor: val/loss}\n",
       "r.yaml:6:40: error: lr_scheduler.monitor is val/loss, but nothing is evaluated before the end\n"
       "  hint: set the interval with eval.eval_steps\n"},
      {"something_to_evaluate", "nothing to evaluate",
       kParts + kBatch + "data: {train: {type: synthetic, task: regression}}\neval: {eval_steps: 5}\n",
       "r.yaml:6:20: warning: eval.eval_steps is given, but train is the only data set: there is nothing to evaluate\n"
       "  hint: add a data set, such as data.val\n"},
      {"time_for_the_save", "the save would take all of the time",
       kParts + kData + kBatch + "launch: {time_limit: 60, save_margin: 1min}\n",
       "r.yaml:6:39: error: time_limit is 60, of which save_margin reserves 1min: no time is left for training\n"
       "  hint: use a longer time_limit, or a shorter save_margin\n"},
      {"time_for_the_save", "a limit alone", kParts + kData + kBatch + "launch: {time_limit: 60}\n", ""},
      {"micro_batch_can_shrink", "nothing would be left",
       kParts + kData + "training: {max_steps: 10, micro_batch_size: 4, auto_micro_batch: 'minus:5'}\n",
       "r.yaml:5:66: error: auto_micro_batch is minus:5, but micro_batch_size is 4: nothing would be left\n"
       "  hint: auto_micro_batch: halve fits every size\n"},
      {"somewhere_to_roll_back_to", "nothing is saved on the way",
       kParts + kData + kBatch + "faults: {on_nan: rollback}\n",
       "r.yaml:6:18: error: faults.on_nan is rollback, but no checkpoint is saved during training\n"
       "  hint: set the interval with checkpoint.save_steps\n"},
      {"somewhere_to_roll_back_to", "the best is saved",
       kParts + kData + kBatch +
           "faults: {on_nan: rollback}\neval: {eval_steps: 5}\ncheckpoint: {save_best: true, monitor: val/loss}\n",
       ""},
      {"init_from_source", "how, but not from where", kParts + kData + kBatch + "init_from: {strict: false}\n",
       "r.yaml:6:21: error: init_from.strict is set, but init_from.path is not\n"
       "  hint: add path: a checkpoint folder, a safetensors file, or RUN:best\n"},
      {"init_from_source", "the short form", kParts + kData + kBatch + "init_from: tiny:best\n", ""},
      {"init_from_rename", "expressions of another dialect, and one that is none",
       kParts + kData + kBatch + "init_from: {path: a, rename: {'h\\.\\d': x, '(b': y}}\n",
       "r.yaml:6:31: error: init_from.rename: \"h\\.\\d\" uses \\d, which POSIX extended expressions do not support\n"
       "  hint: write [0-9] for \\d, [A-Za-z0-9_] for \\w\n"
       "r.yaml:6:43: error: init_from.rename: \"(b\" is not a regular expression: missing ) at \"(b\"\n"
       "  hint: write \\( or \\) for a literal parenthesis\n"},
      {"adapters", "values of another kind",
       kParts + kData + kBatch + "adapters: [{type: lora, target_modules: [q, 1], init_lora_weights: loftq}]\n",
       "r.yaml:6:41: error: target_modules must be a string or a list of names, got [\"q\", 1]\n"
       "  hint: write all-linear, or a list such as [q_proj, v_proj]\n"
       "r.yaml:6:68: error: init_lora_weights must be true, false or gaussian, got \"loftq\"\n"
       "  hint: leave it out: true changes nothing at first\n"},
      {"adapters", "names, all layers of some blocks",
       kParts + kData + kBatch + "adapters: [{type: lora, target_modules: all-linear, layers_to_transform: 0}]\n", ""},
      {"quantization", "in neither way", kParts + kData + kBatch + "init_from: a\nquantization: {}\n",
       "r.yaml:7:15: error: quantization says neither load_in_4bit nor load_in_8bit\n"
       "  hint: add load_in_4bit: true, or remove quantization\n"},
      {"placement", "of weights that are drawn", kParts + kData + kBatch + "placement: {}\n",
       "r.yaml:6:12: error: placement is of trained weights, and init_from names none\n"
       "  hint: add init_from: a folder of Transformers\n"},
      {"placement", "of a map and its limits",
       kParts + kData + kBatch + "init_from: a\nplacement: {device_map: {\"\": cpu}, max_memory: {cpu: 1GB}}\n",
       "r.yaml:7:48: error: placement.max_memory is for maps that are chosen, and device_map says where each module "
       "is\n"
       "  hint: remove it, or write device_map: auto\n"},
      {"weight_tokenizers", "of another model",
       kParts + kData + kBatch + kOtherTokenizer + "init_from: " + kWeights + "\n",
       "r.yaml:6:31: error: the tokenizer is not that of the weights in " + kWeights + ": id 1 is \"!\" in " + kGpt2 +
           " and \"<|im_start|>\" in theirs\n" +
           "  hint: name weights that were trained with this tokenizer, or write tokenizer: {type: file, path: " +
           kWeights + "}\n"},
      {"weight_tokenizers", "whose rows are drawn",
       kParts + kData + kBatch + kOtherTokenizer + "init_from: {path: " + kWeights + ", exclude: 'wte.*'}\n", ""},
      {"weight_tokenizers", "of weights without one", kParts + kData + kBatch + kOtherTokenizer + "init_from: a\n", ""},
      {"precision_keys", "a scale that nothing needs",
       kParts + kData + kBatch + "precision: {mode: bf16-mixed, scaler: {init_scale: 8}}\n",
       "r.yaml:6:52: warning: precision.scaler.init_scale has no effect: only 16-mixed scales the loss, but the mode "
       "is "
       "bf16-mixed\n"
       "  hint: bfloat16 has the range of float32 and needs no scale: remove it\n"},
      {"precision_keys", "no scale in float32", kParts + kData + kBatch + "precision: {scaler: {enabled: false}}\n",
       "r.yaml:6:31: warning: precision.scaler.enabled has no effect: only 16-mixed scales the loss, but the mode is "
       "32-true\n"
       "  hint: write precision.mode: 16-mixed, or leave it out\n"},
      {"precision_keys", "a fixed scale in float32",
       kParts + kData + kBatch + "precision: {scaler: {loss_scale: 128}}\n",
       "r.yaml:6:34: warning: precision.scaler.loss_scale has no effect: only 16-mixed scales the loss, but the mode "
       "is "
       "32-true\n"
       "  hint: write precision.mode: 16-mixed, or leave it out\n"},
      {"precision_keys", "a fixed scale that is to fall",
       kParts + kData + kBatch +
           "precision: {mode: 16-mixed, scaler: {loss_scale: 128, hysteresis: 2, min_loss_scale: 1}}\n",
       "r.yaml:6:67: warning: precision.scaler.hysteresis has no effect: loss_scale is fixed\n"
       "  hint: remove one of the two\n"
       "r.yaml:6:86: warning: precision.scaler.min_loss_scale has no effect: loss_scale is fixed\n"
       "  hint: remove one of the two\n"},
      {"precision_keys", "autocast without a mixed mode",
       kParts + kData + kBatch + "precision: {mode: bf16-true, autocast: {cache_enabled: false}}\n",
       "r.yaml:6:56: warning: precision.autocast.cache_enabled has no effect: only the mixed modes use autocast, but "
       "the mode is bf16-true\n"
       "  hint: leave it out\n"},
      {"precision_keys", "a block in a mixed mode uses autocast",
       kParts + kData + kBatch + "precision: {autocast: {cache_enabled: false}, overrides: {'*.0': bf16-mixed}}\n", ""},
      {"precision_keys", "rounding without bfloat16",
       kParts + kData + kBatch + "precision: {stochastic_rounding: false}\n",
       "r.yaml:6:34: warning: precision.stochastic_rounding has no effect: only bf16-true rounds its weights, but the "
       "mode is 32-true\n"
       "  hint: leave it out\n"},
      {"precision_keys", "the defaults written down",
       kParts + kData + kBatch +
           "precision: {mode: 32-true, scaler: {enabled: true, init_scale: 65536, growth_factor: 2, backoff_factor: "
           "0.5, "
           "growth_interval: 2000}, autocast: {enabled: true, cache_enabled: true}, stochastic_rounding: true}\n",
       ""},
      {"exchanged_batches", "settles without a word",
       kParts + kData + kBatch + "launch: {num_processes: 2}\nparallelism: {shard: gradients}\n", ""},
      {"exchanges", "one process", kParts + kData + kBatch + "accumulation: {sync_each_batch: true}\n",
       "r.yaml:6:33: warning: accumulation.sync_each_batch has no effect: one process exchanges no "
       "gradients\n"
       "  hint: leave it out\n"},
      {"local_sgd", "what needs gradients of all",
       kParts + kData + kBatch + "ddp: {comm_hook: bf16}\n" +
           "precision: 16-mixed\nlaunch: {num_processes: 2}\nlocal_sgd: {local_sgd_steps: 4}\n",
       "r.yaml:6:18: error: ddp.comm_hook cannot be combined with local_sgd: no gradients are exchanged\n"
       "  hint: leave one of the two out\n"
       "r.yaml:7:12: error: precision.mode cannot be combined with local_sgd: processes would overflow at different "
       "steps\n"
       "  hint: leave one of the two out\n"},
      {"parallelism", "sizes that do not multiply to the processes",
       kParts + kData + kBatch + "launch: {num_processes: 4}\nparallelism: {shard: optimizer, dp_shard_size: 3}\n",
       "r.yaml:7:48: error: dp_shard_size is 3, which does not divide launch.num_processes 4\n"
       "  hint: use a divisor of it\n"},
      {"exchanges", "a hook with one process", kParts + kData + kBatch + "ddp: {comm_hook: bf16}\n",
       "r.yaml:6:18: warning: ddp.comm_hook has no effect: one process exchanges no gradients\n"
       "  hint: leave it out\n"},
      {"error_feedback", "a memory of steps that are taken back",
       kParts + kData + kBatch + "launch: {num_processes: 2}\nddp: {comm_hook: power_sgd}\nfaults: {on_spike: skip}\n",
       "r.yaml:8:20: error: faults.on_spike undoes steps, but power_sgd would keep their errors\n"
       "  hint: set use_error_feedback: false, use another comm_hook, or remove it\n"},
      {"tracker_names", "two of a name", kParts + kData + kBatch + "trackers: [{type: csv}, {type: csv}]\n",
       "r.yaml:6:25: error: trackers[1] is called \"csv\", and so is trackers[0]\n"
       "  hint: give each its own `name`\n"},
      {"tracker_places", "two that write to one place",
       kParts + kData + kBatch +
           "trackers: [{type: csv, path: a/b.csv}, {type: jsonl, path: ./a/b.csv, name: other}]\n",
       "r.yaml:6:60: error: trackers[1] writes to \"./a/b.csv\", and so does trackers[0]\n"
       "  hint: give each its own path\n"},
      {"one_process", "no supervisor to restart", kParts + kData + kBatch + "launch: {max_restarts: 2}\n",
       "r.yaml:6:24: warning: launch.max_restarts has no effect: one process has no supervisor\n"
       "  hint: run the same command again to resume, or train with several processes\n"},
      {"one_process", "no process to send batches to", kParts + kData + kBatch + "loader: {dispatch_batches: true}\n",
       "r.yaml:6:28: warning: loader.dispatch_batches has no effect: there is one process\n"
       "  hint: leave it out\n"},
      {"batch_algebra", "a micro-batch that cannot be split",
       kParts + kData + kBatch + "loader: {split_batches: true}\nlaunch: {num_processes: 3}\n",
       "r.yaml:6:25: error: split_batches cuts each micro-batch into num_processes 3 parts, but micro_batch_size 4 "
       "(line 5) is not a multiple of that\n"
       "  hint: use a micro_batch_size divisible by the number of processes, or remove split_batches\n"},
      {"one_process", "nothing to look after",
       kParts + kData + kBatch + "launch: {num_processes: 1, tee: 3, log_dir: logs}\n",
       "r.yaml:6:33: warning: launch.tee has no effect: one process has no supervisor\n"
       "  hint: remove it, or train with several processes\n"
       "r.yaml:6:45: warning: launch.log_dir has no effect: one process has no supervisor\n"
       "  hint: remove it, or train with several processes\n"},
      {"machines", "a number of their own",
       kParts + kData + kBatch + "launch: {num_processes: 4, hosts: [a, b], num_machines: 3}\n",
       "r.yaml:6:57: error: num_machines is 3, but hosts lists 2\n"
       "  hint: remove num_machines\n"},
      {"machines", "another number of processes than of slots",
       kParts + kData + kBatch + "launch: {num_processes: 4, hosts: [{host: a, slots: 3}, {host: b, slots: 2}]}\n",
       "r.yaml:6:25: error: num_processes is 4, but the slots of hosts add up to 5\n"
       "  hint: remove num_processes, or change the slots\n"},
      {"automatic_processes", "more slots than there can be",
       kParts + kData + kBatch + "launch: {hosts: [{host: a, slots: 256}, b]}\n",
       "r.yaml:6:17: error: the slots of launch.hosts are 257 processes; the maximum is 256\n"
       "  hint: use fewer slots\n"},
      {"gpus", "more slots of a machine than GPUs",
       kParts + kData + kBatch +
           "device: cuda\nlaunch: {gpu_ids: [0, 1], hosts: [{host: a, slots: 1}, {host: b, slots: 3}]}\n",
       "r.yaml:7:19: error: gpu_ids lists 2 GPUs, but there are 3 processes on a machine\n"
       "  hint: list a GPU for each process, or use fewer processes\n"},
      {"machines", "more machines than processes",
       kParts + kData + kBatch + "launch: {num_processes: 2, num_machines: 3, machine_rank: 3, min_machines: 4}\n",
       "r.yaml:6:25: error: num_processes is 2, but num_machines is 3: num_processes counts the processes of all "
       "machines\n"
       "  hint: use at least one process per machine\n"
       "r.yaml:6:59: error: machine_rank is 3, but num_machines is 3\n"
       "  hint: the machines are numbered from 0 to 2\n"
       "r.yaml:6:76: error: min_machines is 4, but num_machines is 3\n"
       "  hint: no restart could have that many\n"},
      {"machines", "one machine that is not the first",
       kParts + kData + kBatch + "launch: {num_processes: 2, machine_rank: 1}\n",
       "r.yaml:6:42: error: machine_rank is 1, but num_machines is 1\n"
       "  hint: set num_machines, the same on all machines\n"},
      {"gpus", "a GPU for two processes",
       kParts + kData + kBatch + "device: cuda\nlaunch: {gpu_ids: [1, 1], num_processes: 2}\n",
       "r.yaml:7:19: error: gpu_ids lists a GPU twice: two processes cannot share one\n  hint: list each GPU once\n"},
      {"gpus", "more processes than GPUs",
       kParts + kData + kBatch + "device: cuda\nlaunch: {gpu_ids: 0, num_processes: 3}\n",
       "r.yaml:7:19: error: gpu_ids lists 1 GPU, but there are 3 processes on a machine\n"
       "  hint: list a GPU for each process, or use fewer processes\n"},
      {"gpus", "several processes on a GPU", kParts + kData + kBatch + "device: cuda:1\nlaunch: {num_processes: 2}\n",
       "r.yaml:6:9: error: device is cuda:1, but num_processes is 2: each process needs a GPU of its own\n"
       "  hint: write device: cuda; launch.gpu_ids chooses the GPUs\n"},
      {"gpus", "GPUs of a training on the CPU", kParts + kData + kBatch + "device: cpu\nlaunch: {gpu_ids: [0, 1]}\n",
       "r.yaml:7:19: warning: launch.gpu_ids has no effect: device is cpu\n  hint: remove one of them\n"},
      {"backend", "NCCL between CPUs",
       kParts + kData + kBatch + "device: cpu\nlaunch: {num_processes: 2, backend: nccl}\n",
       "r.yaml:7:37: error: backend is nccl, but the training is on the CPU: NCCL connects GPUs\n"
       "  hint: write backend: auto, or set device: cuda\n"},
      {"exchanges", "NCCL of one process", kParts + kData + kBatch + "device: cuda\nlaunch: {backend: nccl}\n",
       "r.yaml:7:19: warning: launch.backend has no effect: one process exchanges no gradients\n"
       "  hint: leave it out\n"},
      {"random_generators", "the generator of a GPU on the CPU",
       kParts + kData + kBatch + "device: cpu\nloader: {rng_types: [generator, cuda]}\n",
       "r.yaml:7:33: error: rng_types lists cuda, but the training is on the CPU\n"
       "  hint: write torch, the generator of the CPU, or set device: cuda\n"},
      {"random_generators", "a GPU, or what may be one",
       kParts + kData + kBatch + "loader: {rng_types: [generator, torch, cuda]}\n", ""},
      {"sweep_metric", "nothing to compare",
       kParts + "data: {train: {type: synthetic, task: regression}}\n" + kBatch +
           "sweep: {parameters: {seed: {values: [1, 2]}}}\n",
       "r.yaml:6:8: error: a sweep needs an evaluation, but train is the only data set\n"
       "  hint: add a data set, such as data.val\n"},
      {"sweep_isolation", "ranks are processes",
       kParts + kData + kBatch +
           "launch: {num_processes: 2}\nsweep: {isolation: none, parameters: {seed: {values: [1, 2]}}}\n",
       "r.yaml:7:20: error: isolation is none, but launch.num_processes is 2\n"
       "  hint: use isolation: fork, or one process\n"},
      {"profiler_activities", "kernels on the CPU",
       kParts + kData + kBatch + "device: cpu\nprofiler: {activities: [cpu, cuda], sort_by: cuda_time_total}\n",
       "r.yaml:7:30: error: activities lists cuda, but the training is on the CPU\n"
       "  hint: write activities: cpu, or set device: cuda\n"},
      {"profiler_activities", "kernels alone", kParts + kData + kBatch + "profiler: {activities: cuda}\n",
       "r.yaml:6:24: error: activities lists cuda without cpu, which records the steps and what starts the kernels\n"
       "  hint: write activities: [cpu, cuda]\n"},
      {"profiler_activities", "a table sorted by what is not recorded",
       kParts + kData + kBatch + "profiler: {activities: cpu, sort_by: cuda_memory_usage}\n",
       "r.yaml:6:38: error: sort_by is cuda_memory_usage, but activities does not list cuda\n"
       "  hint: write activities: [cpu, cuda]\n"},
      {"profiler_activities", "what may be recorded, once the device is known",
       kParts + kData + kBatch + "profiler: {with_flops: true, sort_by: self_cuda_time_total}\n", ""},
      {"profiler_activities", "settles without a word", kParts + kData + kBatch + "profiler: {with_flops: true}\n", ""},
      {"compat", "settles without a word", kParts + kData + kBatch + "compat: accelerate\n", ""},
      {"held_out", "the same file twice",
       kParts + kBatch +
           "data: {train: {type: csv_table, path: a.csv, target: y}, val: {type: csv_table, path: a.csv, target: y}}\n",
       "r.yaml:5:63: warning: data.val evaluates samples of data.train: both read the same part of the same files\n"
       "  hint: write split: \":90%\" in train and split: \"90%:\" in val\n"},
      {"held_out", "parts that share nothing",
       kParts + kBatch +
           "data: {train: {type: csv_table, path: a.csv, target: y, split: ':90%'}, "
           "val: {type: csv_table, path: a.csv, target: y, split: '90%:'}}\n",
       ""},
      {"cuda_graphs", "nothing in the way", kParts + kData + kBatch + "compile: {cuda_graphs: true}\n", ""},
      {"cuda_graphs", "false is no request",
       kParts + kData + kBatch + "compile: {cuda_graphs: false}\ndevice: cpu\nfaults: {on_nan: skip}\n", ""},
      {"cuda_graphs", "the CPU has none", kParts + kData + kBatch + "compile: {cuda_graphs: true}\ndevice: cpu\n",
       "r.yaml:6:24: error: cuda_graphs is true, but the training is on the CPU: only a GPU has graphs\n"
       "  hint: remove it, or train on an NVIDIA GPU\n"},
      {"cuda_graphs", "what the CPU decides",
       kParts + kData + kBatch +
           "compile: {cuda_graphs: true}\nfaults: {on_nan: skip, on_spike: stop}\nprecision: 16-mixed\n",
       "r.yaml:6:24: error: cuda_graphs is true, but faults.on_nan is skip: the CPU decides before the optimizer "
       "steps\n  hint: remove one of them\n"
       "r.yaml:6:24: error: cuda_graphs is true, but faults.on_spike is stop: the CPU decides before the optimizer "
       "steps\n  hint: remove one of them\n"
       "r.yaml:6:24: error: cuda_graphs is true, but precision.mode is 16-mixed: the CPU decides on the loss scale of "
       "the next step\n  hint: remove one of them\n"},
      {"cuda_graphs", "a scale that does not move",
       kParts + kData + kBatch +
           "compile: {cuda_graphs: true}\nprecision: {mode: 16-mixed, scaler: {enabled: false}}\n",
       ""},
      {"cuda_graphs", "what runs on the CPU",
       kParts + kData + kBatch +
           "compile: {cuda_graphs: true}\nprecision: bf16-true\nactivation_checkpointing: full\n"
           "launch: {num_processes: 2}\n",
       "r.yaml:6:24: error: cuda_graphs is true, but precision.mode is bf16-true: the CPU numbers the draws that round "
       "the weights\n  hint: remove one of them\n"
       "r.yaml:6:24: error: cuda_graphs is true, but activation_checkpointing.mode is full: the CPU restores random "
       "numbers in the backward pass\n  hint: remove one of them\n"
       "r.yaml:6:24: error: cuda_graphs is true, but launch.num_processes is 2: a step of several processes is "
       "not captured\n  hint: remove one of them\n"},
      {"metric_directions", "settles without a word", kParts + kData + kBatch, ""},
      {"streamed_sets", "a stream with a limit", kParts + kStream + kBatch, ""},
      {"streamed_sets", "a stream of which an epoch is asked for",
       kParts + kStream +
           "training: {max_epochs: 2, micro_batch_size: 4}\n"
           "eval: {eval_steps: 1ep}\n"
           "checkpoint: {save_steps: 0.5ep}\n",
       "r.yaml:6:24: error: training.max_epochs counts epochs, but data.train is a stream, which has none\n"
       "  hint: use max_steps\n"
       "r.yaml:7:20: error: eval.eval_steps counts epochs, but data.train is a stream, which has none\n"
       "  hint: count optimizer steps\n"
       "r.yaml:7:20: warning: eval.eval_steps is given, but train is the only data set: there is nothing to evaluate\n"
       "  hint: add a data set, such as data.val\n"
       "r.yaml:8:26: error: checkpoint.save_steps counts epochs, but data.train is a stream, which has none\n"
       "  hint: count optimizer steps\n"},
      {"streamed_sets", "a stream without an end",
       kParts + kStream + "training: {max_tokens: 100, micro_batch_size: 4}\n",
       "r.yaml:6:11: error: data.train is a stream, which has no end: training needs max_steps or max_time\n"
       "  hint: add max_steps: 1000\n"},
      {"streamed_sets", "an order that a stream cannot have",
       kParts + kStream + kBatch +
           "loader: {num_samples: 10, replacement: true, drop_last: true, use_seedable_sampler: false}\n",
       "r.yaml:7:23: error: loader.num_samples sets the length of an epoch, but data.train is a stream\n"
       "  hint: remove num_samples\n"
       "r.yaml:7:40: error: loader.replacement draws from the whole set, but data.train is a stream\n"
       "  hint: remove replacement\n"
       "r.yaml:7:57: error: loader.drop_last is about the end of an epoch, but data.train is a stream\n"
       "  hint: remove drop_last\n"
       "r.yaml:7:85: error: loader.use_seedable_sampler draws a permutation of the whole set, but data.train is a "
       "stream\n  hint: remove use_seedable_sampler\n"},
      {"streamed_sets", "a set to be evaluated",
       kParts + kBatch +
           "data: {train: {type: jsonl, path: a.jsonl}, val: {type: jsonl, path: b.jsonl, streaming: true}}\n",
       "r.yaml:5:90: error: data.val is evaluated as a whole: only data.train can be a stream\n"
       "  hint: remove streaming, and use fewer or smaller files\n"},
      {"streamed_sets", "parts of other sets",
       kParts + kBatch +
           "data:\n"
           "  train:\n"
           "    type: concat\n"
           "    sets:\n"
           "      - {type: jsonl, path: a.jsonl}\n"
           "      - {type: subset, samples: 1, of: {type: jsonl, path: b.jsonl, streaming: true}}\n"
           "  val: {type: subset, samples: 1, of: {type: jsonl, path: c.jsonl, streaming: true}}\n",
       "r.yaml:10:80: error: data.train.sets[1] is streamed, and subset and fold number their samples\n"
       "  hint: remove streaming, or use the set as it is\n"
       "r.yaml:11:79: error: data.val is streamed, and subset and fold number their samples\n"
       "  hint: remove streaming, or use the set as it is\n"},
      {"streamed_sets", "streams beside sets in memory",
       kParts + kBatch +
           "data:\n"
           "  train:\n"
           "    type: concat\n"
           "    sets:\n"
           "      - {type: jsonl, path: a.jsonl}\n"
           "      - {type: jsonl, path: b.jsonl, streaming: true}\n",
       "r.yaml:9:9: error: data.train.sets[0] is read into memory, and data.train.sets[1] is a stream\n"
       "  hint: make all sets jsonl with streaming: true, or remove streaming from all\n"},
      {"streamed_sets", "a mix of streams, which has no epochs and is not evaluated",
       kParts + "training: {max_epochs: 1, micro_batch_size: 2}\n" +
           "data:\n"
           "  train: {type: concat, sets: [{type: jsonl, path: a.jsonl, streaming: true}, {type: jsonl, path: b.jsonl, "
           "streaming: true}]}\n"
           "  val: {type: concat, sets: [{type: jsonl, path: a.jsonl, streaming: true}, {type: jsonl, path: b.jsonl, "
           "streaming: true}]}\n",
       "r.yaml:4:24: error: training.max_epochs counts epochs, but data.train is a stream, which has none\n"
       "  hint: use max_steps\n"
       "r.yaml:7:70: error: data.val is evaluated as a whole: only data.train can be a stream\n"
       "  hint: remove streaming, and use fewer or smaller files\n"},
      {"transforms", "a model that tells next tokens",
       kParts + kBatch + "data: {train: {type: jsonl, path: a.jsonl, transforms: mask_tokens}}\n",
       "r.yaml:5:56: error: mask_tokens asks for tokens that it has masked, and model mlp has no head for them\n"
       "  hint: use a model with head: masked_lm, or remove transforms\n"},
      {"transforms", "a head that tells next tokens",
       "model: {type: transformers, config: {model_type: gpt2}}\nloss: cross_entropy\noptimizer: {type: sgd, lr: 1}\n" +
           kBatch + "data: {train: {type: jsonl, path: a.jsonl, transforms: [{type: mask_tokens}]}}\n",
       "r.yaml:5:57: error: mask_tokens asks for tokens that it has masked, and the model's head is causal_lm, which "
       "tells each next token\n"
       "  hint: use a model with head: masked_lm, or remove transforms\n"},
      {"transforms", "texts without any, and transforms of a part",
       "model: {type: transformers, head: masked_lm, config: {model_type: bert}}\nloss: cross_entropy\n"
       "optimizer: {type: sgd, lr: 1}\n" +
           kBatch +
           "data:\n"
           "  train: {type: jsonl, path: a.jsonl}\n"
           "  marked: {type: ids, path: a.jsonl}\n"
           "  part: {type: subset, samples: 1, of: {type: text, path: a, max_seq_len: 4, transforms: mask_tokens}}\n",
       "r.yaml:6:10: error: the model's head is masked_lm, and nothing masks tokens of data.train\n"
       "  hint: add transforms: [{type: mask_tokens}] to it\n"
       "r.yaml:8:9: error: the model's head is masked_lm, and nothing masks tokens of data.part\n"
       "  hint: add transforms: [{type: mask_tokens}] to it\n"
       "r.yaml:8:90: error: data.part.of has transforms, which change the samples of a whole set\n"
       "  hint: write them under data.part\n"},
      // tests/runner/resolve/programs_test.cpp has those that are refused.
      {"programs", "a recipe of one's own starts programs",
       kParts + kData + kBatch + "callbacks: [{type: command, on: end, run: [a]}]\n", ""},
  };
  std::vector<std::string> told;
  for (const Case& c : cases) {
    told.emplace_back(c.rule);
    DYNAMIC_SECTION(c.rule << ": " << c.name) { CHECK(settled(c.yaml).messages == c.messages); }
  }
  for (const std::string& rule : rule_names()) {
    DYNAMIC_SECTION(rule << " has a case") { CHECK(std::find(told.begin(), told.end(), rule) != told.end()); }
  }
}

TEST_CASE("automatic processes are one per GPU of each machine", "[recipe][consistency]") {
  struct Case {
    const char* keys;
    int gpus;
    int processes;
    const char* why;
  };
  const Case cases[] = {
      {"launch: {num_processes: auto}", 4, 4, "auto: one per GPU"},
      {"launch: {num_processes: auto}", 0, 1, "auto: one per machine, because no GPU can be used"},
      {"device: cpu\nlaunch: {num_processes: auto}", 4, 1, "auto: one per machine, because device is cpu"},
      {"device: cuda:2\nlaunch: {num_processes: auto}", 4, 1, "auto: one per machine, because device is cuda:2"},
      {"device: cuda\nlaunch: {num_processes: auto, gpu_ids: [1, 3]}", 4, 2, "auto: one per GPU"},
      {"launch: {num_processes: auto, gpu_ids: [1, 3]}", 0, 1, "auto: one per machine, because no GPU can be used"},
      {"device: cuda\nlaunch: {num_processes: auto, gpu_ids: [1, 3]}", 0, 1,
       "auto: one per machine, because no GPU can be used"},
      {"launch: {num_processes: auto, hosts: [a, b]}", 4, 8, "auto: one per GPU"},
      {"launch: {num_processes: auto, num_machines: 3, main_process_ip: a, machine_rank: 1}", 2, 6,
       "auto: one per GPU"},
      {"launch: {num_processes: auto, num_machines: 32, main_process_ip: a}", 8, 256, "auto: one per GPU"},
      {"launch: {num_processes: 3}", 4, 3, nullptr},
  };
  for (const Case& c : cases) {
    CAPTURE(c.keys);
    const Settled result = settled(kParts + kData + kBatch + c.keys + "\n", c.gpus);
    CHECK(result.messages.empty());
    const core::Node* processes = result.root.at_path("launch.num_processes");
    REQUIRE(processes != nullptr);
    REQUIRE(processes->is_integer());
    CHECK(processes->as_integer() == c.processes);
    if (c.why != nullptr) CHECK(processes->history().back().text == c.why);
    const core::Node* batch = result.root.at_path("training.global_batch_size");
    REQUIRE(batch != nullptr);
    CHECK(batch->as_integer() == 4 * c.processes);
  }
}

TEST_CASE("more automatic processes than there can be are refused", "[recipe][consistency]") {
  const std::string launch = "launch: {num_processes: auto, num_machines: 33, main_process_ip: a}\n";
  CHECK(settled(kParts + kData + kBatch + launch, 8).messages ==
        "r.yaml:6:25: error: num_processes is auto, which is 264: 8 on each of 33 machines; the maximum is 256\n"
        "  hint: set the number of processes\n");
}

TEST_CASE("what a profile is to hold turns it on", "[recipe][consistency]") {
  const auto activities = [](const std::string& keys, const std::string& more = "") {
    const core::Node root = settled(kParts + kData + kBatch + "profiler: {" + keys + "}\n" + more).root;
    return core::to_json(*root.at_path("profiler.activities"), -1);
  };
  CHECK(activities("with_flops: true") == "[\"cpu\"]");
  CHECK(activities("output_trace_dir: traces") == "[\"cpu\"]");
  CHECK(activities("with_flops: false") == "null");
  CHECK(activities("row_limit: 5") == "null");
  CHECK(activities("with_flops: true", "device: cpu\n") == "[\"cpu\"]");
  CHECK(activities("with_flops: true", "device: cuda:1\n") == "[\"cpu\", \"cuda\"]");
  CHECK(activities("with_flops: true, activities: cpu", "device: cuda\n") == "[\"cpu\"]");
}

TEST_CASE("what needs a GPU is refused once auto is settled as the CPU", "[recipe][consistency]") {
  core::Node root = settled(kParts + kData + kBatch +
                            "loader: {rng_types: [generator, cuda]}\n"
                            "profiler: {with_flops: true, sort_by: cuda_time_total}\n"
                            "compile: {cuda_graphs: true}\n")
                        .root;
  const auto messages = [&root](const char* device) {
    root.set("device", core::Node::string(device));
    core::Diagnostics diagnostics;
    check_device(root, diagnostics);
    diagnostics.sort();
    core::RenderOptions options;
    options.excerpts = false;
    return core::render(diagnostics, options);
  };
  CHECK(messages("cuda:0").empty());
  CHECK(messages("cpu") ==
        "r.yaml:6:33: error: rng_types lists cuda, but the training is on the CPU\n"
        "  hint: write torch, the generator of the CPU, or set device: cuda\n"
        "r.yaml:7:39: error: sort_by is cuda_time_total, but activities does not list cuda\n"
        "  hint: sort by self_cpu_time_total\n"
        "r.yaml:8:24: error: cuda_graphs is true, but the training is on the CPU: only a GPU has graphs\n"
        "  hint: remove it, or train on an NVIDIA GPU\n");
}

TEST_CASE("the direction of a metric follows from its name unless set", "[recipe][consistency]") {
  struct Case {
    const char* name;
    const char* keys;
    const char* path;
    const char* direction;
  };
  static constexpr Case cases[] = {
      {"nothing monitored", "", "checkpoint.mode", "min"},
      {"a loss", "checkpoint: {monitor: val/loss}", "checkpoint.mode", "min"},
      {"an accuracy", "checkpoint: {monitor: val/accuracy}", "checkpoint.mode", "max"},
      {"an accuracy to be minimized", "checkpoint: {monitor: val/accuracy, mode: min}", "checkpoint.mode", "min"},
      {"an unknown metric", "checkpoint: {monitor: val/reward}", "checkpoint.mode", "min"},
      {"early stopping", "callbacks: [{type: early_stopping, monitor: val/accuracy}]", "callbacks[0].mode", "max"},
      {"a plateau", "lr_scheduler: {type: plateau, monitor: val/accuracy}", "lr_scheduler.mode", "max"},
      {"a sweep by its metric", "sweep: {parameters: {seed: {values: [1, 2]}}, metric: {name: val/accuracy}}",
       "sweep.metric.goal", "maximize"},
      {"a sweep by the first loss", "sweep: {parameters: {seed: {values: [1, 2]}}}", "sweep.metric.goal", "minimize"},
      {"a sweep by checkpoint.monitor",
       "checkpoint: {monitor: val/reward, mode: max}\nsweep: {parameters: {seed: {values: [1, 2]}}}",
       "sweep.metric.goal", "maximize"},
      {"a sweep by a metric besides checkpoint.monitor",
       "checkpoint: {monitor: val/accuracy}\n"
       "sweep: {parameters: {seed: {values: [1, 2]}}, metric: {name: val/mse}}",
       "sweep.metric.goal", "minimize"},
      {"objectives",
       "sweep: {parameters: {seed: {values: [1, 2]}}, objectives: [{name: val/loss}, {name: val/accuracy}]}",
       "sweep.objectives[1].goal", "maximize"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const core::Node root = settled(kParts + kData + kBatch + c.keys + "\n").root;
      const core::Node* direction = root.at_path(c.path);
      REQUIRE(direction != nullptr);
      CHECK(direction->scalar_text() == c.direction);
    }
  }
}

TEST_CASE("the short form of a section takes keys from elsewhere", "[recipe][consistency]") {
  const std::string recipe = kParts + kData + kBatch + "init_from: tiny:best\n";
  const auto with_sets = [&](std::vector<std::string> sets) {
    core::Diagnostics diagnostics;
    recipe::ComposeOptions options;
    for (std::string& text : sets) options.overrides.push_back({recipe::Override::Kind::kSet, std::move(text)});
    auto source = std::make_shared<core::Source>(core::Source{"r.yaml", recipe, core::Source::Kind::kFile});
    const auto composed = recipe::compose_text(source, options, diagnostics);
    REQUIRE(composed.has_value());
    const core::Node root = registry::validate_recipe(composed->root, registry::Registry::builtin(), diagnostics);
    CHECK(core::render(diagnostics, {}) == "");
    return core::to_json(*root.find("init_from")->find("path"), -1) + " " +
           core::to_json(*root.find("init_from")->find("strict"), -1);
  };
  CHECK(with_sets({"init_from.strict=false"}) == "\"tiny:best\" false");
  CHECK(with_sets({"init_from.path=other"}) == "\"other\" true");
  CHECK(with_sets({"init_from=other"}) == "\"other\" true");
}

TEST_CASE("two of the three batch sizes give the third", "[recipe][consistency]") {
  struct Case {
    const char* training;
    std::int64_t micro, accumulation, global;
  };
  static constexpr Case cases[] = {
      {"micro_batch_size: 8, global_batch_size: 32", 8, 4, 32},
      {"micro_batch_size: 8, gradient_accumulation_steps: 3", 8, 3, 24},
      {"gradient_accumulation_steps: 2, global_batch_size: 32", 16, 2, 32},
      {"micro_batch_size: 8", 8, 1, 8},
      {"global_batch_size: 32", 32, 1, 32},
      {"micro_batch_size: 8, gradient_accumulation_steps: 4, global_batch_size: 32", 8, 4, 32},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.training) {
      const Settled result = settled(kParts + kData + "training: {max_steps: 10, " + c.training + "}\n");
      CHECK(result.messages == "");
      CHECK(result.root.at_path("training.micro_batch_size")->as_integer() == c.micro);
      CHECK(result.root.at_path("training.gradient_accumulation_steps")->as_integer() == c.accumulation);
      CHECK(result.root.at_path("training.global_batch_size")->as_integer() == c.global);
    }
  }
}

TEST_CASE("the model of a folder computes a few of a global batch at a time", "[recipe][consistency]") {
  struct Case {
    std::int64_t global;
    int processes;
    std::int64_t micro, accumulation;
  };
  static constexpr Case cases[] = {{16, 1, 4, 4}, {16, 2, 4, 2}, {6, 1, 3, 2},
                                   {5, 1, 1, 5},  {2, 1, 2, 1},  {6, 4, 1, 2}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.global << " by " << c.processes) {
      const Settled result =
          settled("model: {type: transformers, config: {model_type: gpt2}}\nloss: cross_entropy\n" +
                  std::string("optimizer: sgd\n") + kData +
                  "training: {max_steps: 10, "
                  "global_batch_size: " +
                  std::to_string(c.global) + "}\n" + "launch: {num_processes: " + std::to_string(c.processes) + "}\n");
      CHECK(result.root.at_path("training.micro_batch_size")->as_integer() == c.micro);
      CHECK(result.root.at_path("training.gradient_accumulation_steps")->as_integer() == c.accumulation);
      CHECK(result.root.at_path("training.global_batch_size")->as_integer() == c.global);
    }
  }
}

TEST_CASE("with a limit of memory the model of a folder begins with all samples", "[recipe][consistency]") {
  const auto with = [](const std::string& optimizer, const std::string& more) {
    return settled("model: {type: transformers, config: {model_type: gpt2}}\nloss: cross_entropy\noptimizer: " +
                   optimizer + "\n" + kData + "training: {max_steps: 10, global_batch_size: 6, max_memory: 2GB" + more +
                   "}\nlaunch: {num_processes: 2}\n");
  };
  const Settled result = with("sgd", "");
  CHECK(result.root.at_path("training.micro_batch_size")->as_integer() == 3);
  CHECK(result.root.at_path("training.gradient_accumulation_steps")->as_integer() == 1);
  CHECK(result.root.at_path("training.auto_micro_batch")->as_string() == "halve");
  CHECK(with("sgd", ", auto_micro_batch: shrink").root.at_path("training.auto_micro_batch")->as_string() == "shrink");
  CHECK(with("lomo", "").root.at_path("training.micro_batch_size")->as_integer() == 3);
  CHECK(with("lomo", "").root.at_path("training.auto_micro_batch")->is_null());
}

TEST_CASE("a micro-batch that is split is one of all processes", "[recipe][consistency]") {
  const Settled result =
      settled(kParts + kData + "training: {max_steps: 10, micro_batch_size: 8, gradient_accumulation_steps: 3}\n" +
              "loader: {split_batches: true}\nlaunch: {num_processes: 4}\n");
  CHECK(result.messages == "");
  CHECK(result.root.at_path("training.global_batch_size")->as_integer() == 24);
}

TEST_CASE("whole micro-batches are dealt out to processes", "[recipe][consistency]") {
  struct Case {
    const char* training;
    int processes;
    std::int64_t micro, accumulation, global;
  };
  static constexpr Case cases[] = {
      {"micro_batch_size: 8", 4, 8, 1, 32},
      {"micro_batch_size: 8, gradient_accumulation_steps: 2", 3, 8, 2, 48},
      {"micro_batch_size: 8, global_batch_size: 32", 2, 8, 2, 32},
      {"gradient_accumulation_steps: 2, global_batch_size: 32", 2, 8, 2, 32},
      {"global_batch_size: 32", 4, 8, 1, 32},
      // 4 micro-batches for 3 processes: the busiest one makes 2. A resolved recipe says all three sizes.
      {"micro_batch_size: 8, global_batch_size: 32", 3, 8, 2, 32},
      {"micro_batch_size: 8, gradient_accumulation_steps: 2, global_batch_size: 32", 3, 8, 2, 32},
      {"micro_batch_size: 8, global_batch_size: 32", 5, 8, 1, 32},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.training << " on " << c.processes) {
      const Settled result = settled(kParts + kData + "training: {max_steps: 10, " + c.training +
                                     "}\nlaunch: {num_processes: " + std::to_string(c.processes) + "}\n");
      CHECK(result.messages == "");
      CHECK(result.root.at_path("training.micro_batch_size")->as_integer() == c.micro);
      CHECK(result.root.at_path("training.gradient_accumulation_steps")->as_integer() == c.accumulation);
      CHECK(result.root.at_path("training.global_batch_size")->as_integer() == c.global);
    }
  }
}

TEST_CASE("what is settled keeps what was written", "[recipe][consistency]") {
  struct Case {
    const char* name;
    std::string yaml;
    const char* path;
    const char* value;
  };
  const std::string base = kParts + kData;
  const Case cases[] = {
      {"the schedule ends with the training", base + kBatch + "lr_scheduler: cosine\n", "lr_scheduler.total_steps",
       "10"},
      {"a written end stays", base + kBatch + "lr_scheduler: {type: cosine, total_steps: 70}\n",
       "lr_scheduler.total_steps", "70"},
      {"a schedule that counts micro-batches",
       base + "training: {max_steps: 10, micro_batch_size: 4, gradient_accumulation_steps: 3}\n" +
           "lr_scheduler: cosine\naccumulation: {adjust_scheduler: false}\n",
       "lr_scheduler.total_steps", "30"},
      {"epochs wait for the data", base + "training: {max_epochs: 2, micro_batch_size: 4}\nlr_scheduler: cosine\n",
       "lr_scheduler.total_steps", "null"},
      {"with epochs beside steps the earlier one counts, which needs the data",
       base + "training: {max_steps: 10, max_epochs: 2, micro_batch_size: 4}\nlr_scheduler: cosine\n",
       "lr_scheduler.total_steps", "null"},
      {"compat sets the schedule's pace", base + kBatch + "compat: accelerate\n", "lr_scheduler.step_per_process",
       "true"},
      {"compat sets the mean", base + kBatch + "compat: accelerate\n", "accumulation.mean", "\"micro_batches\""},
      {"compat sets the padding", base + kBatch + "compat: accelerate\n", "loader.count_repeated_samples", "true"},
      {"compat leaves what is written", base + kBatch + "compat: accelerate\naccumulation: {mean: tokens}\n",
       "accumulation.mean", "\"tokens\""},
      {"without compat nothing moves", base + kBatch, "lr_scheduler.step_per_process", "false"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const Settled result = settled(c.yaml);
      CHECK(result.messages == "");
      CHECK(core::to_json(*result.root.at_path(c.path), -1) == c.value);
    }
  }
}

}  // namespace
}  // namespace runner::resolve
