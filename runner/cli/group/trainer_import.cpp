#include "runner/cli/group/trainer_import.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/cli/group/import_draft.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/read.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::lower;
using core::Node;

struct Argument {
  enum class Use {
    kCopied,    ///< the value at `text`, a path of the recipe
    kRead,      ///< by a function below
    kNoEffect,  ///< changes memory, speed or files, not what is learnt; or roux does it without being asked
    kRefused,   ///< an error where it has a value; `text` is the hint
  };
  const char* name;
  Use use = Use::kRead;
  const char* text = "";
};

constexpr auto kCopied = Argument::Use::kCopied;
constexpr auto kNoEffect = Argument::Use::kNoEffect;
constexpr auto kRefused = Argument::Use::kRefused;

constexpr const char* kQuantized =
    "remove it: roux does not quantize weights; precision bf16-true keeps them in 16 bits";
constexpr const char* kSharded =
    "remove it: every process holds the whole model; `launch.num_processes` starts several";
constexpr const char* kArguments = "remove it, and write the arguments into the block of the recipe";

/// Of torchrun or accelerate, in front of the script.
constexpr const char* kProcesses = "nproc_per_node";

constexpr Argument kKnown[] = {
    // The model.
    {"model_name_or_path"},
    {"config_name", kRefused, "remove it, or write the model into a recipe"},
    {"tokenizer_name"},
    {"tokenizer_name_or_path"},
    {"model_revision"},
    {"load_in_4bit", kRefused, kQuantized},
    {"load_in_8bit", kRefused, kQuantized},
    {"quantization_bit", kRefused, kQuantized},
    {"quantization_method", kNoEffect},
    // The data.
    {"train_file"},
    {"validation_file"},
    {"validation_split_percentage"},
    {"dataset_name"},
    {"dataset_config_name", kNoEffect},
    {"dataset_config", kNoEffect},
    {"dataset_train_split", kNoEffect},
    {"dataset_test_split", kNoEffect},
    {"dataset_text_field"},
    {"dataset"},
    {"eval_dataset"},
    {"dataset_dir"},
    {"val_size"},
    {"template"},
    {"chat_template_path", kRefused, "remove it, and write chat_format into the data set"},
    {"block_size"},
    {"max_seq_length"},
    {"max_length"},
    {"cutoff_len"},
    {"max_prompt_length", kRefused, "remove it: max_seq_len is the limit of prompt and completion together"},
    {"max_completion_length", kRefused, "remove it: max_seq_len is the limit of prompt and completion together"},
    {"packing"},
    {"train_on_prompt"},
    {"completion_only_loss"},
    {"assistant_only_loss"},
    {"max_train_samples", kRefused, "remove it, and take a part of the data with `split`, such as \":10%\""},
    {"max_eval_samples", kCopied, "eval.max_batches"},
    {"max_samples"},
    {"streaming"},
    // What is trained.
    {"stage"},
    {"finetuning_type"},
    {"use_peft"},
    {"lora_r"},
    {"lora_rank"},
    {"lora_alpha"},
    {"lora_dropout"},
    {"lora_target"},
    {"lora_target_modules"},
    {"lora_modules_to_save"},
    {"additional_target"},
    {"use_rslora"},
    {"use_dora"},
    {"adapter_name_or_path"},
    {"lora_task_type", kNoEffect},
    {"loraplus_lr_ratio", kRefused, "write a learning rate for `*.lora_B.weight` into optimizer.param_groups"},
    {"pissa_init", kRefused, "remove it"},
    {"beta"},
    {"pref_beta"},
    {"loss_type"},
    {"pref_loss"},
    {"label_smoothing"},
    {"dpo_label_smoothing"},
    {"label_smoothing_factor"},
    {"reference_free", kCopied, "loss.reference_free"},
    {"ref_model"},
    {kProcesses, kCopied, "launch.num_processes"},
    // TrainingArguments.
    {"output_dir", kCopied, "output_dir"},
    {"run_name", kCopied, "run_name"},
    {"seed"},
    {"data_seed", kCopied, "loader.data_seed"},
    {"full_determinism", kCopied, "deterministic"},
    {"per_device_train_batch_size"},
    {"per_device_eval_batch_size", kCopied, "eval.micro_batch_size"},
    {"per_gpu_train_batch_size", kRefused, "use per_device_train_batch_size"},
    {"per_gpu_eval_batch_size", kRefused, "use per_device_eval_batch_size"},
    {"gradient_accumulation_steps", kCopied, "training.gradient_accumulation_steps"},
    {"auto_find_batch_size"},
    {"num_train_epochs"},
    {"max_steps"},
    {"max_grad_norm"},
    {"learning_rate"},
    {"weight_decay"},
    {"adam_beta1"},
    {"adam_beta2"},
    {"adam_epsilon"},
    {"optim"},
    {"adafactor"},
    {"optim_args", kRefused, kArguments},
    {"optim_target_modules", kRefused, "remove it"},
    {"lr_scheduler_type"},
    {"lr_scheduler_kwargs"},
    {"warmup_steps"},
    {"warmup_ratio", kCopied, "lr_scheduler.warmup_ratio"},
    {"neftune_noise_alpha", kRefused, "remove it: roux adds no noise to embeddings"},
    {"bf16"},
    {"fp16"},
    {"pure_bf16"},
    {"bf16_full_eval", kNoEffect},
    {"fp16_full_eval", kNoEffect},
    {"gradient_checkpointing"},
    {"use_cpu"},
    {"no_cuda"},
    {"eval_strategy"},
    {"evaluation_strategy"},
    {"eval_steps"},
    {"eval_on_start", kCopied, "eval.eval_on_start"},
    {"save_strategy"},
    {"save_steps"},
    {"save_total_limit", kCopied, "checkpoint.save_total_limit"},
    {"load_best_model_at_end", kCopied, "checkpoint.save_best"},
    {"metric_for_best_model"},
    {"greater_is_better"},
    {"resume_from_checkpoint", kRefused, "remove it: `roux run` resumes an unfinished run by itself"},
    {"logging_strategy"},
    {"logging_steps"},
    {"report_to"},
    {"group_by_length", kCopied, "loader.group_by_length"},
    {"dataloader_num_workers", kCopied, "loader.num_workers"},
    {"dataloader_drop_last", kCopied, "loader.drop_last"},
    {"dataloader_prefetch_factor", kCopied, "loader.prefetch_factor"},
    {"ddp_find_unused_parameters", kCopied, "ddp.find_unused_parameters"},
    {"ddp_bucket_cap_mb", kCopied, "ddp.bucket_cap_mb"},
    {"ddp_broadcast_buffers", kCopied, "ddp.broadcast_buffers"},
    {"deepspeed", kRefused, kSharded},
    {"fsdp", kRefused, kSharded},
    {"fsdp_config", kRefused, kSharded},
    {"freeze_trainable_layers", kRefused, "remove it, and name the parameters in `training.train_only`"},
    {"use_galore", kRefused, "remove it"},
    {"use_badam", kRefused, "remove it"},
};

/// Without effect here.
constexpr const char* kWithoutEffect[] = {"accelerator_config",
                                          "attn_implementation",
                                          "average_tokens_across_devices",
                                          "batch_eval_metrics",
                                          "cache_dir",
                                          "dataloader_persistent_workers",
                                          "dataloader_pin_memory",
                                          "dataset_num_proc",
                                          "ddp_backend",
                                          "ddp_timeout",
                                          "debug",
                                          "disable_gradient_checkpointing",
                                          "disable_tqdm",
                                          "do_eval",
                                          "do_predict",
                                          "do_train",
                                          "dtype",
                                          "enable_liger_kernel",
                                          "eval_accumulation_steps",
                                          "eval_delay",
                                          "flash_attn",
                                          "fp16_backend",
                                          "fp16_opt_level",
                                          "gradient_checkpointing_kwargs",
                                          "half_precision_backend",
                                          "hub_model_id",
                                          "hub_private_repo",
                                          "hub_strategy",
                                          "hub_token",
                                          "ignore_data_skip",
                                          "include_for_metrics",
                                          "include_inputs_for_metrics",
                                          "include_num_input_tokens_seen",
                                          "include_tokens_per_second",
                                          "keep_linebreaks",
                                          "label_names",
                                          "length_column_name",
                                          "local_rank",
                                          "log_level",
                                          "log_level_replica",
                                          "log_on_each_node",
                                          "logging_dir",
                                          "logging_first_step",
                                          "logging_nan_inf_filter",
                                          "low_cpu_mem_usage",
                                          "model_type",
                                          "overwrite_cache",
                                          "overwrite_output_dir",
                                          "past_index",
                                          "plot_loss",
                                          "predict_with_generate",
                                          "prediction_loss_only",
                                          "preprocessing_num_workers",
                                          "push_to_hub",
                                          "ray_scope",
                                          "remove_unused_columns",
                                          "restore_callback_states_from_checkpoint",
                                          "resize_vocab",
                                          "save_on_each_node",
                                          "save_only_model",
                                          "save_safetensors",
                                          "skip_memory_metrics",
                                          "tf32",
                                          "tokenizer_revision",
                                          "token",
                                          "torch_compile",
                                          "torch_compile_backend",
                                          "torch_compile_mode",
                                          "torch_dtype",
                                          "torch_empty_cache_steps",
                                          "torchdynamo",
                                          "tpu_num_cores",
                                          "trust_remote_code",
                                          "use_auth_token",
                                          "use_cache",
                                          "use_fast_tokenizer",
                                          "use_legacy_prediction_loop",
                                          "use_liger_kernel",
                                          "use_mps_device",
                                          "use_unsloth"};

constexpr ImportWords kSchedules[] = {
    {"linear", "linear"},
    {"cosine", "cosine"},
    {"cosine_with_restarts", "cosine_with_restarts"},
    {"polynomial", "polynomial"},
    {"constant", "constant"},
    {"constant_with_warmup", "constant"},
    {"inverse_sqrt", "inverse_sqrt"},
    {"reduce_lr_on_plateau", "plateau"},
    {"cosine_with_min_lr", "cosine"},
    {"warmup_stable_decay", "wsd"},
};

constexpr ImportWords kTrackers[] = {
    {"wandb", "wandb"},     {"tensorboard", "tensorboard"}, {"mlflow", "mlflow"}, {"comet_ml", "comet_ml"},
    {"clearml", "clearml"}, {"dvclive", "dvclive"},         {"none", ""},         {"all", ""},
};

constexpr ImportWords kTemplates[] = {{"chatml", "chatml"}, {"llama2", "llama2"},        {"llama3", "llama3"},
                                      {"qwen", "qwen2_5"},  {"mistral", "mistral_v0_1"}, {"zephyr", "zephyr"},
                                      {"alpaca", "alpaca"}};

/// What only arguments of a Trainer, or LLaMA-Factory, are called.
constexpr const char* kOwn[] = {"per_device_train_batch_size", "num_train_epochs", "model_name_or_path",
                                "finetuning_type", "lr_scheduler_type"};

std::vector<std::string> list_of(const Node& value) {
  if (value.is_sequence()) {
    std::vector<std::string> items;
    for (const Node& item : value.items()) items.push_back(item.scalar_text());
    return items;
  }
  std::vector<std::string> items;
  std::string text = value.scalar_text() + ",";
  for (std::size_t end = text.find(','); end != std::string::npos; end = text.find(',')) {
    const std::string item(core::trimmed(std::string_view(text).substr(0, end)));
    if (!item.empty()) items.push_back(item);
    text.erase(0, end + 1);
  }
  return items;
}

Node texts(const std::vector<std::string>& items) {
  Node list = Node::sequence();
  for (const std::string& item : items) list.items().push_back(Node::string(item));
  return list;
}

class Import {
 public:
  Import(const Node& config, core::Diagnostics& diagnostics) : config_(config), diagnostics_(diagnostics) {}

  Node recipe() {
    for (const Node::Entry& entry : config_.entries()) check(entry);
    take_model();
    take_adapter();
    take_loss();
    take_data();
    take_optimizer();
    take_schedule();
    take_lengths();
    take_precision();
    take_intervals();
    take_rest();
    for (const Node::Entry& entry : config_.entries()) {
      const Argument* known = find(entry.key);
      if (known != nullptr && known->use == kCopied && asks_for_something(entry.value))
        draft_.put(known->text, entry.value);
    }
    return draft_.ordered();
  }

 private:
  /// Null where it has no value, which `false` and an empty text are, too.
  const Node* get(const char* name) const {
    const Node* value = config_.find(name);
    return value != nullptr && asks_for_something(*value) ? value : nullptr;
  }
  const Node* first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const Node* value = get(name)) return value;
    }
    return nullptr;
  }
  bool is_false(const char* name) const {
    const Node* value = config_.find(name);
    return value != nullptr && value->is_bool() && !value->as_bool();
  }

  void error(const Node& at, const std::string& message, const std::string& hint) {
    diagnostics_.error(at.location(), message, hint);
  }

  static const Argument* find(std::string_view name) {
    const auto* const found =
        std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Argument& one) { return name == one.name; });
    return found == std::end(kKnown) ? nullptr : found;
  }

  void check(const Node::Entry& entry) {
    const Argument* known = find(entry.key);
    if (known != nullptr) {
      if (known->use == kRefused && asks_for_something(entry.value))
        diagnostics_.error(entry.key_location, entry.key + " has no equivalent", known->text);
      return;
    }
    const auto is_key = [&entry](const char* name) { return entry.key == name; };
    if (std::any_of(std::begin(kWithoutEffect), std::end(kWithoutEffect), is_key)) return;
    if (!asks_for_something(entry.value)) return;
    std::vector<std::string> names(std::begin(kWithoutEffect), std::end(kWithoutEffect));
    for (const Argument& one : kKnown) names.emplace_back(one.name);
    const std::string near = core::closest(entry.key, names);
    diagnostics_.error(entry.key_location,
                       core::quote(entry.key) + " is not an argument of the Trainer that roux knows",
                       near.empty() ? "remove it if training does not depend on it" : "did you mean " + near + "?");
  }

  void take_model() {
    const Node* model = get("model_name_or_path");
    if (model == nullptr) return;
    draft_.put("recipe_version", Node::integer(1));
    std::string path = model_path(model->scalar_text());
    if (const Node* revision = get("model_revision"); revision != nullptr && path.starts_with("hf://"))
      path += "@" + revision->scalar_text();
    draft_.put("init_from", Node::string(path, model->location()));
    if (const Node* tokenizer = first_of({"tokenizer_name", "tokenizer_name_or_path"})) {
      draft_.put("tokenizer.type", Node::string("file"));
      draft_.put("tokenizer.path", Node::string(model_path(tokenizer->scalar_text()), tokenizer->location()));
    }
    if (const Node* teacher = get("ref_model"))
      draft_.put("teacher.init_from", Node::string(model_path(teacher->scalar_text()), teacher->location()));
  }

  /// LLaMA-Factory trains an adapter where it says nothing; the others where use_peft says so.
  bool is_factory() const { return get("finetuning_type") != nullptr || get("stage") != nullptr; }

  void take_adapter() {
    const Node* type = get("finetuning_type");
    if (type != nullptr && type->scalar_text() != "lora" && type->scalar_text() != "full")
      return error(*type, "finetuning_type " + type->scalar_text() + " has no equivalent", "use lora or full");
    const bool adapts = is_factory() ? type == nullptr || type->scalar_text() == "lora" : get("use_peft") != nullptr;
    if (!adapts) return;
    Node adapter = Node::mapping();
    adapter.set("type", Node::string("lora"));
    const Node* rank = first_of({"lora_r", "lora_rank"});
    const Node r = rank != nullptr ? *rank : Node::integer(is_factory() ? 8 : 16);
    adapter.set("r", r);
    if (const Node* alpha = get("lora_alpha")) {
      adapter.set("lora_alpha", *alpha);
    } else {
      const std::int64_t twice = r.is_integer() ? 2 * r.as_integer() : 32;
      adapter.set("lora_alpha", Node::integer(is_factory() ? twice : 32));
    }
    const Node* dropout = config_.find("lora_dropout");
    if (dropout != nullptr && dropout->is_number()) {
      adapter.set("lora_dropout", *dropout);
    } else if (!is_factory()) {
      adapter.set("lora_dropout", Node::floating(0.05));
    }
    const Node* targets = first_of({"lora_target", "lora_target_modules"});
    const bool all = targets == nullptr ? is_factory() : list_of(*targets) == std::vector<std::string>{"all"};
    if (all) {
      adapter.set("target_modules", Node::string("all-linear"));
    } else if (targets != nullptr) {
      const std::vector<std::string> names = list_of(*targets);
      const bool linear = names.size() == 1 && names[0] == "all-linear";
      adapter.set("target_modules", linear ? Node::string("all-linear") : texts(names));
    }
    if (const Node* saved = first_of({"additional_target", "lora_modules_to_save"}))
      adapter.set("modules_to_save", texts(list_of(*saved)));
    for (const char* key : {"use_rslora", "use_dora"}) {
      if (const Node* value = get(key)) adapter.set(key, *value);
    }
    if (const Node* path = get("adapter_name_or_path")) adapter.set("path", *path);
    draft_.put("adapters", Node::sequence({std::move(adapter)}));
  }

  bool is_dpo() const {
    const Node* stage = get("stage");
    return stage != nullptr ? stage->scalar_text() == "dpo" : get("beta") != nullptr;
  }

  void take_loss() {
    const Node* stage = get("stage");
    if (stage != nullptr) {
      const std::string text = stage->scalar_text();
      if (text != "pt" && text != "sft" && text != "dpo")
        return error(*stage, "stage " + text + " has no equivalent", "use pt, sft or dpo");
    }
    if (!is_dpo()) {
      if (const Node* smoothing = get("label_smoothing_factor")) {
        draft_.put("loss.type", Node::string("cross_entropy"));
        draft_.put("loss.label_smoothing", *smoothing);
      }
      return;
    }
    draft_.put("loss.type", Node::string("dpo"));
    if (const Node* beta = first_of({"beta", "pref_beta"})) draft_.put("loss.beta", *beta);
    if (const Node* kind = first_of({"loss_type", "pref_loss"})) {
      const std::vector<std::string> kinds = list_of(*kind);
      if (kinds.size() == 1 && (kinds[0] == "sigmoid" || kinds[0] == "ipo")) {
        draft_.put("loss.loss_type", Node::string(kinds[0]));
      } else {
        error(*kind, "loss_type " + core::joined(kinds) + " has no equivalent", "use sigmoid or ipo");
      }
    }
    if (const Node* smoothing = first_of({"label_smoothing", "dpo_label_smoothing"}))
      draft_.put("loss.label_smoothing", *smoothing);
  }

  void take_data() {
    std::vector<Node> train, val;
    if (const Node* file = get("train_file")) train = {set_of_file(*file)};
    if (const Node* file = get("validation_file")) val = {set_of_file(*file)};
    if (const Node* name = get("dataset_name")) train = {set_of_hub(*name)};
    if (const Node* names = get("dataset")) train = sets_of_factory(*names);
    if (const Node* names = get("eval_dataset")) val = sets_of_factory(*names);
    if (train.empty()) return;
    std::string border;
    if (val.empty()) {
      if (const Node* part = get("val_size"); part != nullptr && part->is_number()) {
        if (part->as_double() < 1) border = percent_of(1 - part->as_double());
        if (part->as_double() >= 1)
          error(*part, "val_size is " + part->scalar_text() + ", a number of records",
                "write a part of them, such as val_size: 0.05");
      }
      const Node* percent = get("validation_split_percentage");
      if (border.empty() && percent != nullptr && percent->is_number())
        border = percent_of(1 - percent->as_double() / 100);
    }
    const double held_out = border.empty() ? 0 : 1 - std::stod(border) / 100;
    draft_.put("data.train", few_of(joined_sets(train, border.empty() ? "" : ":" + border), 1 - held_out));
    if (!val.empty()) {
      draft_.put("data.val", few_of(joined_sets(val, ""), 1));
    } else if (!border.empty()) {
      draft_.put("data.val", few_of(joined_sets(train, border + ":"), held_out));
    }
  }

  /// Its part of `max_samples`.
  Node few_of(Node set, double part) const {
    const Node* most = get("max_samples");
    if (most == nullptr || !most->is_integer()) return set;
    Node few = Node::mapping(most->location());
    few.set("type", Node::string("subset"));
    few.set("of", std::move(set));
    const double samples = std::round(part * static_cast<double>(most->as_integer()));
    few.set("samples", Node::integer(static_cast<std::int64_t>(std::max(1.0, samples))));
    return few;
  }

  Node new_set(const char* type, const core::Location& at) {
    Node made = Node::mapping(at);
    made.set("type", Node::string(type));
    return made;
  }

  void add_options(Node& made, bool lines) {
    if (const Node* length = first_of({"block_size", "max_seq_length", "max_length", "cutoff_len"})) {
      made.set("max_seq_len", *length);
    } else if (is_factory()) {
      made.set("max_seq_len", Node::integer(2048));
    }
    if (!lines) return;
    if (get("packing") != nullptr && !is_dpo()) made.set("packing", Node::boolean(true));
    if (get("train_on_prompt") != nullptr || is_false("completion_only_loss")) made.set("loss_on", Node::string("all"));
    if (get("streaming") != nullptr) made.set("streaming", Node::boolean(true));
    const Node* format = get("template");
    if (format == nullptr) return;
    if (const auto name = word_of("template", *format, kTemplates, diagnostics_))
      made.set("chat_format", Node::string(*name));
  }

  Node set_of_file(const Node& file) {
    const std::string path = file.scalar_text();
    const bool lines = path.ends_with(".json") || path.ends_with(".jsonl") || path.ends_with(".gz");
    if (!lines && !path.ends_with(".txt"))
      error(file, path + " is neither text nor JSON Lines", "write a file of .txt or .jsonl");
    Node made = new_set(lines ? "jsonl" : "text", file.location());
    made.set("path", file);
    const Node* field = get("dataset_text_field");
    if (lines && field != nullptr && field->scalar_text() != "text") add_column(made, "text", field->scalar_text());
    add_options(made, lines);
    return made;
  }

  static void add_column(Node& made, const char* name, const std::string& field) {
    Node columns = made.find("columns") != nullptr ? *made.find("columns") : Node::mapping();
    columns.set(name, Node::string(field));
    made.set("columns", std::move(columns));
  }

  Node set_of_hub(const Node& name) {
    std::error_code failed;
    const std::string text = name.scalar_text();
    Node made = new_set("jsonl", name.location());
    if (fs::is_directory(text, failed)) {
      made.set("path", Node::string(text + "/*.jsonl"));
    } else {
      tell_file(name);
      made.set("path", Node::string("hf://datasets/" + text + "/FILE.jsonl"));
    }
    const Node* field = get("dataset_text_field");
    if (field != nullptr && field->scalar_text() != "text") add_column(made, "text", field->scalar_text());
    add_options(made, true);
    return made;
  }

  void tell_file(const Node& name) {
    diagnostics_.warning(name.location(), name.scalar_text() + " is a data set of the Hub, and roux reads its files",
                         "put the name of its JSONL file in place of FILE.jsonl");
  }

  /// LLaMA-Factory's names, by dataset_info.json of its folder.
  std::vector<Node> sets_of_factory(const Node& names) {
    const Node* written = get("dataset_dir");
    const std::string folder = written != nullptr ? written->scalar_text() : "data";
    const auto text = core::read_file(folder + "/dataset_info.json", 4 << 20);
    const auto table = text ? core::parse_json(text.value()) : core::Result<Node>(text.failure());
    if (!table)
      diagnostics_.warning(names.location(),
                           "what the data sets are stands in " + folder + "/dataset_info.json, which " +
                               (text ? "is not JSON" : "is not here"),
                           "put their files in place of NAME.jsonl");
    std::vector<Node> sets;
    for (const std::string& name : list_of(names)) {
      const Node* entry = table && table.value().is_mapping() ? table.value().find(name) : nullptr;
      if (table && entry == nullptr) {
        std::vector<std::string> known;
        for (const Node::Entry& one : table.value().entries()) known.push_back(one.key);
        const std::string near = core::closest(name, known);
        error(names, folder + "/dataset_info.json has no " + core::quote(name),
              near.empty() ? "correct the name" : "did you mean " + near + "?");
      }
      sets.push_back(set_of_factory(name, folder, entry, names));
    }
    return sets;
  }

  Node set_of_factory(const std::string& name, const std::string& folder, const Node* entry, const Node& at) {
    Node made = new_set("jsonl", at.location());
    std::string path = folder + "/" + name + ".jsonl";
    const auto text_of = [entry](const char* key) {
      const Node* value = entry != nullptr && entry->is_mapping() ? entry->find(key) : nullptr;
      return value != nullptr && value->is_string() ? value->as_string() : std::string();
    };
    if (!text_of("file_name").empty()) {
      path = folder + "/" + text_of("file_name");
    } else if (!text_of("hf_hub_url").empty()) {
      tell_file(at);
      path = "hf://datasets/" + text_of("hf_hub_url") + "/FILE.jsonl";
    }
    made.set("path", Node::string(path));
    add_columns(made, entry);
    add_options(made, true);
    return made;
  }

  /// Alpaca's fields and ShareGPT's are known by their usual names.
  void add_columns(Node& made, const Node* entry) {
    const Node* columns = entry != nullptr && entry->is_mapping() ? entry->find("columns") : nullptr;
    if (columns == nullptr || !columns->is_mapping()) return;
    const auto column = [columns](const char* key) {
      const Node* value = columns->find(key);
      return value != nullptr && value->is_string() ? value->as_string() : std::string();
    };
    const bool plain = column("query").empty();
    const std::vector<std::pair<const char*, std::string>> fields = {
        {"messages", column("messages")}, {"chosen", column("chosen")}, {"rejected", column("rejected")}};
    const std::string prompt = column("prompt"), response = column("response");
    if (!prompt.empty() && plain && prompt != "instruction") add_column(made, "prompt", prompt);
    if (!response.empty() && plain && response != "output") add_column(made, "completion", response);
    for (const auto& [name, field] : fields) {
      if (!field.empty() && field != name && field != "conversations") add_column(made, name, field);
    }
  }

  void take_optimizer() {
    const Node* name = get("optim");
    std::string type = get("adafactor") != nullptr ? "adafactor" : "adamw";
    if (name != nullptr) type = optimizer_of("optim", *name, diagnostics_).value_or(type);
    draft_.put("optimizer.type", Node::string(type));
    const Node* rate = get("learning_rate");
    draft_.put("optimizer.lr", rate != nullptr ? *rate : Node::floating(5e-5));
    const Node* decay = config_.find("weight_decay");
    const bool decays = type != "rprop" && !type.ends_with("lomo");
    if (decays)
      draft_.put("optimizer.weight_decay", decay != nullptr && decay->is_number() ? *decay : Node::floating(0.0));
    const Node *beta1 = get("adam_beta1"), *beta2 = get("adam_beta2"), *eps = get("adam_epsilon");
    if ((type == "adamw" || type == "lion") && (beta1 != nullptr || beta2 != nullptr)) {
      draft_.put("optimizer.betas", Node::sequence({beta1 != nullptr ? *beta1 : Node::floating(0.9),
                                                    beta2 != nullptr ? *beta2 : Node::floating(0.999)}));
    }
    if (type == "adamw" && eps != nullptr) draft_.put("optimizer.eps", *eps);
  }

  void take_schedule() {
    const Node* written = get("lr_scheduler_type");
    std::string type = "linear";
    if (written != nullptr) type = word_of("lr_scheduler_type", *written, kSchedules, diagnostics_).value_or(type);
    draft_.put("lr_scheduler.type", Node::string(type));
    if (const Node* warmup = get("warmup_steps"); warmup != nullptr && warmup->is_number() && warmup->as_double() > 0) {
      // Below 1 it is a part of the training, in version 5.
      draft_.put(warmup->as_double() < 1 ? "lr_scheduler.warmup_ratio" : "lr_scheduler.warmup_steps", *warmup);
    }
    const Node* more = get("lr_scheduler_kwargs");
    if (more == nullptr) return;
    if (!more->is_mapping()) return error(*more, "lr_scheduler_kwargs must be a mapping", kArguments);
    for (const Node::Entry& entry : more->entries()) {
      if (entry.key == "num_cycles") {
        draft_.put("lr_scheduler.num_cycles", entry.value);
      } else if (entry.key == "min_lr_rate") {
        draft_.put("lr_scheduler.min_lr_ratio", entry.value);
      } else if (entry.key == "power") {
        draft_.put("lr_scheduler.power", entry.value);
      } else {
        diagnostics_.error(entry.key_location, entry.key + " of lr_scheduler_kwargs has no equivalent", kArguments);
      }
    }
  }

  void take_lengths() {
    const Node *size = get("per_device_train_batch_size"), *epochs = get("num_train_epochs");
    draft_.put("training.micro_batch_size", size != nullptr ? *size : Node::integer(8));
    const Node* steps = get("max_steps");
    const bool by_steps = steps != nullptr && steps->is_number() && steps->as_double() > 0;
    if (by_steps) {
      draft_.put("training.max_steps", *steps);
    } else {
      draft_.put("training.max_epochs", epochs != nullptr ? *epochs : Node::integer(3));
    }
    const Node* norm = config_.find("max_grad_norm");
    if (norm == nullptr) {
      draft_.put("training.clip_grad_norm", Node::floating(1.0));
    } else if (norm->is_number() && norm->as_double() > 0) {
      draft_.put("training.clip_grad_norm", *norm);
    }
    if (get("auto_find_batch_size") != nullptr) draft_.put("training.auto_micro_batch", Node::string("halve"));
  }

  void take_precision() {
    const char* mode = get("pure_bf16") != nullptr ? "bf16-true"
                       : get("bf16") != nullptr    ? "bf16-mixed"
                       : get("fp16") != nullptr    ? "16-mixed"
                                                   : nullptr;
    if (mode != nullptr) draft_.put("precision.mode", Node::string(mode));
    if (get("gradient_checkpointing") != nullptr) draft_.put("activation_checkpointing.mode", Node::string("full"));
    if (get("use_cpu") != nullptr || get("no_cuda") != nullptr) draft_.put("device", Node::string("cpu"));
  }

  /// `strategy`: no, steps, epoch or best. A number below 1 is a part of the training.
  void take_interval(const Node* strategy, const char* steps, int usual, const char* path) {
    const std::string kind = strategy != nullptr ? lower(strategy->scalar_text()) : "steps";
    if (kind == "epoch") return draft_.put(path, Node::string("1ep"));
    if (kind != "steps") return;
    const Node* number = get(steps);
    if (number != nullptr && number->is_number() && number->as_double() < 1)
      return error(*number, std::string(steps) + " is " + number->scalar_text() + ", a part of the training",
                   "write a number of steps");
    draft_.put(path, number != nullptr ? *number : Node::integer(usual));
  }

  /// In YAML 1.1 `no` is false.
  const Node* strategy_of(const char* name) const {
    const Node* value = config_.find(name);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }

  void take_intervals() {
    const Node* eval = strategy_of("eval_strategy");
    if (eval == nullptr) eval = strategy_of("evaluation_strategy");
    if (eval != nullptr) take_interval(eval, "eval_steps", logging_steps(), "eval.eval_steps");
    const Node* save = strategy_of("save_strategy");
    const std::string kind = save != nullptr ? lower(save->scalar_text()) : "steps";
    if (kind == "best") draft_.put("checkpoint.save_best", Node::boolean(true));
    take_interval(save, "save_steps", 500, "checkpoint.save_steps");
    if (const Node* metric = get("metric_for_best_model")) {
      std::string name = metric->scalar_text();
      if (name.starts_with("eval_")) name = name.substr(5);
      draft_.put("checkpoint.monitor", Node::string(name.find('/') == std::string::npos ? "val/" + name : name));
    }
    const Node* greater = config_.find("greater_is_better");
    if (greater != nullptr && greater->is_bool() && get("metric_for_best_model") != nullptr)
      draft_.put("checkpoint.mode", Node::string(greater->as_bool() ? "max" : "min"));
    const Node* logging = strategy_of("logging_strategy");
    if (logging == nullptr || lower(logging->scalar_text()) == "steps")
      draft_.put("logging_steps", Node::integer(logging_steps()));
  }

  int logging_steps() const {
    const Node* steps = get("logging_steps");
    return steps != nullptr && steps->is_integer() ? static_cast<int>(steps->as_integer()) : 500;
  }

  void take_rest() {
    const Node* seed = config_.find("seed");
    draft_.put("seed", seed != nullptr && seed->is_integer() ? *seed : Node::integer(42));
    const Node* report = get("report_to");
    if (report == nullptr) return;
    Node trackers = Node::sequence();
    for (const std::string& name : list_of(*report)) {
      const auto known = word_of("report_to", Node::string(name, report->location()), kTrackers, diagnostics_);
      if (known && !known->empty()) trackers.items().push_back(Node::string(*known));
    }
    if (!trackers.items().empty()) draft_.put("trackers", std::move(trackers));
  }

  const Node& config_;
  core::Diagnostics& diagnostics_;
  ImportDraft draft_;
};

/// The words of a line, as a shell takes them apart: quotes, backslashes, comments, lines that go on.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        if (c == '\\' && quote == '"' && i + 1 < text.size()) ++i;
        word += text[i];
      }
    } else if (c == '\\' && i + 1 < text.size()) {
      const bool ends_line = text[i + 1] == '\n' || (text[i + 1] == '\r' && i + 2 < text.size());
      i += text[i + 1] == '\r' ? 2 : 1;
      if (!ends_line) {
        word += text[i];
        open = true;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (c == '#' && !open && word.empty()) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (open || !word.empty()) words.push_back(std::exchange(word, ""));
      open = false;
    } else {
      word += c;
    }
  }
  if (open || !word.empty()) words.push_back(word);
  return words;
}

/// A value of a command line, where Python writes True and None.
Node value_of(const std::string& text, const std::shared_ptr<const core::Source>& source) {
  core::Location location;
  location.source = source;
  if (text == "True" || text == "true") return Node::boolean(true, location);
  if (text == "False" || text == "false") return Node::boolean(false, location);
  if (text == "None") return Node::null(location);
  core::Diagnostics ignored;
  const auto value = recipe::read_value(source, text, ignored);
  const bool plain = value && !ignored.has_errors() &&
                     (value->is_number() || ((text.front() == '{' || text.front() == '[') && !value->is_string()));
  return plain ? *value : Node::string(text, location);
}

}  // namespace

bool is_trainer(const Node& config) {
  return config.is_mapping() &&
         std::any_of(std::begin(kOwn), std::end(kOwn), [&](const char* key) { return config.find(key) != nullptr; });
}

std::optional<Node> read_command_line(const std::shared_ptr<const core::Source>& source,
                                      core::Diagnostics& diagnostics) {
  const std::vector<std::string> words = words_of(source->text);
  const auto script = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word.ends_with(".py") || word == "sft" || word == "dpo" || word == "train";
  });
  const auto is_option = [](const std::string& word) { return word.starts_with("--") && word.size() > 2; };
  auto at = std::find_if(script == words.end() ? words.begin() : script, words.end(), is_option);
  if (at == words.end() || (script == words.end() && at != words.begin())) return std::nullopt;
  core::Location location;
  location.source = source;
  Node config = Node::mapping(location);
  for (auto before = words.begin(); before != at; ++before) {
    for (const std::string name : {"--nproc_per_node", "--nproc-per-node", "--num_processes", "--num-processes"}) {
      const bool alone = *before == name && std::next(before) != at;
      if (!alone && !before->starts_with(name + "=")) continue;
      config.set(kProcesses, value_of(alone ? *std::next(before) : before->substr(name.size() + 1), source), location);
    }
  }
  while (at != words.end()) {
    std::string key = at->substr(2);
    std::vector<std::string> values;
    if (const std::size_t equals = key.find('='); equals != std::string::npos) {
      values = {key.substr(equals + 1)};
      key.resize(equals);
    }
    for (++at; at != words.end() && !is_option(*at); ++at) values.push_back(*at);
    std::replace(key.begin(), key.end(), '-', '_');
    const bool negated = key.starts_with("no_") && key != "no_cuda" && values.empty();
    if (negated) key.erase(0, 3);
    if (key == "config" || key == "config_file") {
      diagnostics.error(location, "--" + key + " names a file of more arguments", "import that file instead");
      continue;
    }
    Node value = Node::boolean(!negated, location);
    if (values.size() == 1) value = value_of(values[0], source);
    if (values.size() > 1) {
      value = Node::sequence();
      for (const std::string& one : values) value.items().push_back(value_of(one, source));
    }
    config.set(key, std::move(value), location);
  }
  return config;
}

Node recipe_of_trainer(const Node& config, core::Diagnostics& diagnostics) {
  return Import(config, diagnostics).recipe();
}

}  // namespace runner::cli
