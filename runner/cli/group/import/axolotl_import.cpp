#include "runner/cli/group/import/axolotl_import.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/group/import/import_draft.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::lower;
using core::Node;

struct Key {
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

constexpr auto kCopied = Key::Use::kCopied;
constexpr auto kRead = Key::Use::kRead;
constexpr auto kNoEffect = Key::Use::kNoEffect;
constexpr auto kRefused = Key::Use::kRefused;

constexpr const char* kQuantized = "remove it: roux does not quantize weights; `bf16: full` keeps them in 16 bits";
constexpr const char* kOneLoss = "use rl: dpo or rl: ipo, or remove it";

constexpr Key kKeys[] = {
    {"base_model"},
    {"datasets"},
    {"test_datasets"},
    {"val_set_size"},
    {"sequence_len"},
    {"sample_packing"},
    {"train_on_inputs"},
    {"chat_template"},
    {"shuffle_merged_datasets", kNoEffect},
    {"adapter"},
    {"lora_r", kCopied, "adapters.r"},
    {"lora_alpha", kCopied, "adapters.lora_alpha"},
    {"lora_dropout", kCopied, "adapters.lora_dropout"},
    {"lora_target_modules", kCopied, "adapters.target_modules"},
    {"lora_target_linear"},
    {"peft_use_rslora", kCopied, "adapters.use_rslora"},
    {"peft_layers_to_transform", kCopied, "adapters.layers_to_transform"},
    {"peft_init_lora_weights", kCopied, "adapters.init_lora_weights"},
    {"lora_model_dir", kCopied, "adapters.path"},
    {"lora_fan_in_fan_out", kNoEffect},
    {"lora_mlp_kernel", kNoEffect},
    {"lora_qkv_kernel", kNoEffect},
    {"lora_o_kernel", kNoEffect},
    {"lora_modules_to_save", kCopied, "adapters.modules_to_save"},
    {"peft_use_dora", kCopied, "adapters.use_dora"},
    {"lora_target_parameters", kRefused, "remove it: adapters are of linear layers"},
    {"loraplus_lr_ratio", kRefused, "write a learning rate for `*.lora_B.weight` into optimizer.param_groups"},
    {"relora", kRefused, "remove it"},
    {"relora_steps", kRefused, "remove it"},
    {"unfrozen_parameters", kRefused, "remove it, and name the parameters in `training.train_only`"},
    {"gradient_accumulation_steps", kCopied, "training.gradient_accumulation_steps"},
    {"micro_batch_size"},
    {"batch_size", kCopied, "training.global_batch_size"},
    {"eval_batch_size", kCopied, "eval.micro_batch_size"},
    {"num_epochs"},
    {"max_steps", kCopied, "training.max_steps"},
    {"max_grad_norm"},
    {"optimizer"},
    {"learning_rate", kCopied, "optimizer.lr"},
    {"weight_decay"},
    {"adam_beta1"},
    {"adam_beta2"},
    {"adam_epsilon"},
    {"lr_scheduler"},
    {"warmup_steps", kCopied, "lr_scheduler.warmup_steps"},
    {"warmup_ratio", kCopied, "lr_scheduler.warmup_ratio"},
    {"cosine_min_lr_ratio", kCopied, "lr_scheduler.min_lr_ratio"},
    {"optim_args", kRefused, "remove it, and write the arguments into `optimizer`"},
    {"lr_scheduler_kwargs", kRefused, "remove it, and write the arguments into `lr_scheduler`"},
    {"bf16"},
    {"bfloat16"},
    {"fp16"},
    {"float16"},
    {"gradient_checkpointing"},
    {"eval_steps"},
    {"save_steps"},
    {"evals_per_epoch"},
    {"saves_per_epoch"},
    {"save_total_limit", kCopied, "checkpoint.save_total_limit"},
    {"load_best_model_at_end", kCopied, "checkpoint.save_best"},
    {"logging_steps", kCopied, "logging_steps"},
    {"seed", kCopied, "seed"},
    {"output_dir", kCopied, "output_dir"},
    {"group_by_length", kCopied, "loader.group_by_length"},
    {"dataloader_num_workers", kCopied, "loader.num_workers"},
    {"early_stopping_patience"},
    {"wandb_project"},
    {"wandb_entity"},
    {"wandb_name"},
    {"special_tokens"},
    {"tokenizer_config"},
    {"load_in_8bit", kRefused, kQuantized},
    {"load_in_4bit", kRefused, kQuantized},
    {"gptq", kRefused, kQuantized},
    {"rl"},
    {"rl_beta"},
    {"dpo_label_smoothing"},
    {"neftune_noise_alpha", kRefused, "remove it: roux adds no noise to embeddings"},
    {"tokens", kRefused, "remove it, and add the tokens to the tokenizer's folder; see init_from.resize_vocab"},
    {"added_tokens_overrides", kRefused, "remove it, and add the tokens to the tokenizer's folder"},
    {"pretraining_dataset", kRefused, "write data: {train: {type: text, path: FILE}} in a recipe"},
    {"resume_from_checkpoint", kRefused, "remove it: `roux run` resumes an unfinished run by itself"},
    {"plugins", kRefused, "remove it: there is no Python"},
    {"deepspeed"},
    {"fsdp"},
    {"fsdp_config"},
    {"auto_resume_from_checkpoints", kNoEffect},
    {"model_type", kNoEffect},
    {"tokenizer_type", kNoEffect},
    {"tokenizer_use_fast", kNoEffect},
    {"tokenizer_legacy", kNoEffect},
    {"trust_remote_code", kNoEffect},
    {"is_llama_derived_model", kNoEffect},
    {"is_mistral_derived_model", kNoEffect},
    {"is_qwen_derived_model", kNoEffect},
    {"is_falcon_derived_model", kNoEffect},
    {"strict", kNoEffect},
    {"dataset_prepared_path", kNoEffect},
    {"dataset_processes", kNoEffect},
    {"pad_to_sequence_len", kNoEffect},
    {"eval_sample_packing", kNoEffect},
    {"sample_packing_eff_est", kNoEffect},
    {"total_num_tokens", kNoEffect},
    {"dataloader_pin_memory", kNoEffect},
    {"dataloader_prefetch_factor", kNoEffect},
    {"tf32", kNoEffect},
    {"gradient_checkpointing_kwargs", kNoEffect},
    {"flash_attention", kNoEffect},
    {"xformers_attention", kNoEffect},
    {"sdp_attention", kNoEffect},
    {"eager_attention", kNoEffect},
    {"attn_implementation", kNoEffect},
    {"flash_attn_cross_entropy", kNoEffect},
    {"flash_attn_rms_norm", kNoEffect},
    {"flash_attn_fuse_mlp", kNoEffect},
    {"flash_attn_fuse_qkv", kNoEffect},
    {"torch_compile", kNoEffect},
    {"torch_dtype", kNoEffect},
    {"local_rank", kNoEffect},
    {"ddp_timeout", kNoEffect},
    {"debug", kNoEffect},
    {"eval_table_size", kNoEffect},
    {"eval_max_new_tokens", kNoEffect},
    {"save_safetensors", kNoEffect},
    {"save_only_model", kNoEffect},
    {"save_first_step", kNoEffect},
    {"save_strategy", kNoEffect},
    {"eval_strategy", kNoEffect},
    {"evaluation_strategy", kNoEffect},
    {"wandb_watch", kNoEffect},
    {"wandb_run_id", kNoEffect},
    {"wandb_log_model", kNoEffect},
    {"wandb_mode", kNoEffect},
    {"use_wandb", kNoEffect},
    {"hub_model_id", kNoEffect},
    {"hub_strategy", kNoEffect},
    {"push_dataset_to_hub", kNoEffect},
    {"hf_use_auth_token", kNoEffect},
    {"loss_watchdog_threshold", kNoEffect},
    {"loss_watchdog_patience", kNoEffect},
};

constexpr ImportWords kSchedules[] = {
    {"cosine", "cosine"}, {"linear", "linear"}, {"constant", "constant"}, {"constant_with_warmup", "constant"}};

constexpr ImportWords kFormats[] = {{"chatml", "chatml"},
                                    {"llama3", "llama3"},
                                    {"alpaca", "alpaca"},
                                    {"qwen_25", "qwen2_5"},
                                    {"mistral_v1", "mistral_v0_1"},
                                    {"mistral_v2v3", "mistral_v3"},
                                    {"mistral_v3_tekken", "mistral_nemo"}};

constexpr const char* kDatasetKeys[] = {"path",         "type",         "ds_type",        "data_files",
                                        "revision",     "field",        "field_messages", "chat_template",
                                        "field_prompt", "field_chosen", "field_rejected", "trust_remote_code"};

/// What roux does anyway: another value of these keys would select other records or other targets.
constexpr std::pair<const char*, const char*> kDatasetValues[] = {
    {"split", "\"train\""},
    {"roles_to_train", "[\"assistant\"]"},
    {"roles_to_train", "[\"gpt\"]"},
    {"train_on_eos", "\"turn\""},
    {"message_field_role", "\"role\""},
    {"message_field_role", "\"from\""},
    {"message_field_content", "\"content\""},
    {"message_field_content", "\"value\""},
    {"message_property_mappings", "{\"role\": \"role\", \"content\": \"content\"}"},
    {"message_property_mappings", "{\"role\": \"from\", \"content\": \"value\"}"}};

class Import {
 public:
  Import(const Node& config, core::Diagnostics& diagnostics) : config_(config), diagnostics_(diagnostics) {}

  Node recipe() {
    put("recipe_version", Node::integer(1));
    for (const Node::Entry& entry : config_.entries()) check(entry);
    const Node* base = get("base_model");
    put("init_from", Node::string(model_path(base->scalar_text()), base->location()));
    take_adapter();
    take_data();
    take_optimizer();
    take_lengths();
    take_precision();
    take_intervals();
    take_rest();
    for (const Node::Entry& entry : config_.entries()) copy(entry);
    if (adapter_.is_mapping()) put("adapters", Node::sequence({std::move(adapter_)}));
    Node recipe = draft_.ordered();
    take_sharding(config_, recipe, diagnostics_);
    return recipe;
  }

 private:
  /// Null where it has no value, which `false` and an empty text are, too.
  const Node* get(const char* name) const {
    const Node* value = config_.find(name);
    return value != nullptr && asks_for_something(*value) ? value : nullptr;
  }

  void error(const Node& at, const std::string& message, const std::string& hint) {
    diagnostics_.error(at.location(), message, hint);
  }

  static const Key* find(std::string_view name) {
    const auto* const found =
        std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& key) { return name == key.name; });
    return found == std::end(kKeys) ? nullptr : found;
  }

  void check(const Node::Entry& entry) {
    const Key* key = find(entry.key);
    if (key == nullptr) {
      if (!asks_for_something(entry.value)) return;  // asks for nothing
      std::vector<std::string> names;
      for (const Key& known : kKeys) names.emplace_back(known.name);
      const std::string near = core::closest(entry.key, names);
      diagnostics_.error(entry.key_location, core::quote(entry.key) + " is not a key of Axolotl that roux knows",
                         near.empty() ? "remove it if training does not depend on it" : "did you mean " + near + "?");
    } else if (key->use == kRefused && asks_for_something(entry.value)) {
      diagnostics_.error(entry.key_location, entry.key + " has no equivalent", key->text);
    }
  }

  void copy(const Node::Entry& entry) {
    const Key* key = find(entry.key);
    if (key == nullptr || key->use != kCopied || entry.value.is_null()) return;
    const bool of_warmup = entry.key == "warmup_steps" || entry.key == "warmup_ratio";
    if (of_warmup && !warms_up_) return;
    if (entry.value.is_sequence() && entry.value.items().empty()) return;
    const bool of_adapter = std::string_view(key->text).starts_with("adapters.");
    if (of_adapter && !adapter_.is_mapping()) return;
    if (of_adapter) {
      adapter_.set(std::string_view(key->text).substr(std::string_view("adapters.").size()), entry.value);
    } else {
      put(key->text, entry.value);
    }
  }

  void put(const std::string& path, Node value) { draft_.put(path, std::move(value)); }

  std::optional<std::string> word_of(const char* key, const Node& value, std::span<const ImportWords> words) {
    return cli::word_of(key, value, words, diagnostics_);
  }

  void take_adapter() {
    const Node* adapter = get("adapter");
    if (adapter == nullptr) {
      const Node* rank = get("lora_r");
      if (rank != nullptr) diagnostics_.notice(rank->location(), "lora_r has no effect without adapter: lora");
      return;
    }
    if (adapter->scalar_text() != "lora") {
      return error(*adapter, "adapter " + adapter->scalar_text() + " has no equivalent",
                   adapter->scalar_text() == "qlora" ? "use adapter: lora; roux does not quantize weights, and "
                                                       "`bf16: full` keeps them in 16 bits"
                                                     : "use adapter: lora");
    }
    adapter_ = Node::mapping();
    adapter_.set("type", Node::string("lora"));
    if (get("lora_target_linear") == nullptr) return;
    if (const Node* names = get("lora_target_modules")) {
      return error(*names, "lora_target_modules and lora_target_linear both choose layers", "keep one of them");
    }
    adapter_.set("target_modules", Node::string("all-linear"));
  }

  void take_data() {
    const Node* sets = get("datasets");
    if (sets == nullptr || !sets->is_sequence()) {
      return error(sets != nullptr ? *sets : config_, "datasets must be a list of {path, type}",
                   "write datasets: [{path: FILE.jsonl, type: chat_template}]");
    }
    const std::vector<Node> train = data_sets(*sets);
    const Node* tests = get("test_datasets");
    const std::optional<double> held_out = tests == nullptr ? part_held_out() : std::nullopt;
    const std::string border = held_out ? percent_of(1 - *held_out) : "";
    put("data.train", joined_sets(train, held_out ? ":" + border : ""));
    if (tests != nullptr && tests->is_sequence()) {
      put("data.val", joined_sets(data_sets(*tests), ""));
    } else if (held_out) {
      put("data.val", joined_sets(train, border + ":"));
    }
  }

  /// val_set_size.
  std::optional<double> part_held_out() {
    const Node* part = get("val_set_size");
    if (part == nullptr || (part->is_number() && part->as_double() == 0)) return std::nullopt;
    if (part->is_number() && part->as_double() > 0 && part->as_double() < 1) return part->as_double();
    error(*part, "val_set_size is " + part->scalar_text() + ", a number of records",
          "write a part of them, such as val_set_size: 0.05");
    return std::nullopt;
  }

  std::vector<Node> data_sets(const Node& sets) {
    std::vector<Node> all;
    for (const Node& set : sets.items()) all.push_back(data_set(set));
    return all;
  }

  Node data_set(const Node& set) {
    Node made = Node::mapping(set.location());
    made.set("type", Node::string("jsonl"));
    if (!set.is_mapping() || set.find("path") == nullptr || !set.find("path")->is_string()) {
      error(set, "a data set needs a path", "write {path: FILE.jsonl, type: chat_template}");
      return made;
    }
    check_keys(set);
    made.set("path", data_paths(set));
    take_form(set, made);
    if (const Node* length = get("sequence_len")) made.set("max_seq_len", *length);
    if (get("sample_packing") != nullptr) made.set("packing", Node::boolean(true));
    if (get("train_on_inputs") != nullptr) made.set("loss_on", Node::string("all"));
    return made;
  }

  void check_keys(const Node& set) {
    for (const Node::Entry& entry : set.entries()) {
      const bool known = std::any_of(std::begin(kDatasetKeys), std::end(kDatasetKeys),
                                     [&](const char* key) { return entry.key == key; });
      const std::string value = core::to_json(entry.value, -1);
      const bool usual = std::any_of(std::begin(kDatasetValues), std::end(kDatasetValues),
                                     [&](const auto& same) { return entry.key == same.first && value == same.second; });
      if (known || usual || !asks_for_something(entry.value)) continue;
      diagnostics_.error(entry.key_location,
                         core::quote(entry.key) + " of a data set has no equivalent with this value",
                         "remove it; `roux explain data/jsonl` shows the forms of records and the keys `columns`");
    }
  }

  /// Files here or in a data set of the Hub.
  Node data_paths(const Node& set) {
    const Node* files = set.find("data_files");
    if (files == nullptr || !files->is_sequence() || files->items().size() < 2)
      return Node::string(data_path(set, files == nullptr ? ""
                                         : files->is_sequence() && !files->items().empty()
                                             ? files->items()[0].scalar_text()
                                             : files->scalar_text()));
    std::vector<Node> paths;
    for (const Node& file : files->items()) paths.push_back(Node::string(data_path(set, file.scalar_text())));
    return Node::sequence(std::move(paths));
  }

  std::string data_path(const Node& set, const std::string& file) {
    const std::string path = set.find("path")->as_string();
    std::error_code failed;
    if (fs::is_directory(path, failed)) return path + "/" + (file.empty() ? "*.jsonl" : file);
    const bool names_file = path.ends_with(".jsonl") || path.ends_with(".json") || path.ends_with(".gz");
    const bool local = names_file || fs::exists(path, failed) || path.starts_with(".") || path.starts_with("/");
    if (local) return !file.empty() && !names_file ? file : path;
    if (lower(path) == "json" && !file.empty()) return file;
    const Node* revision = set.find("revision");
    const std::string folder =
        "hf://datasets/" + path +
        (revision != nullptr && asks_for_something(*revision) ? "@" + revision->scalar_text() : "");
    if (!file.empty()) return folder + "/" + file;
    diagnostics_.warning(set.find("path")->location(), path + " is a data set of the Hub, and roux reads its files",
                         "put the name of its JSONL file in place of FILE.jsonl, or write data_files here");
    return folder + "/FILE.jsonl";
  }

  /// Which fields a record has.
  void take_form(const Node& set, Node& made) {
    const Node* type = set.find("type");
    const std::string form = type != nullptr && type->is_string() ? lower(type->as_string()) : "";
    const bool chat = form == "chat_template" || form.starts_with("sharegpt");
    if (form == "chat_template.default" || form == "user_defined.default") {
      take_pair(set, form, made);
    } else if (form == "completion") {
      const Node* field = set.find("field");
      if (field != nullptr && field->is_string() && field->as_string() != "text") add_column(made, "text", *field);
    } else if (chat) {
      const Node* field = set.find("field_messages");
      const bool usual = field == nullptr || !field->is_string() || field->as_string() == "messages" ||
                         field->as_string() == "conversations";
      if (!usual) add_column(made, "messages", *field);
      take_chat_format(set, made);
    } else if (form != "alpaca" || type->as_string() == "") {
      error(type != nullptr ? *type : set,
            "data sets of type " + (form.empty() ? "{...}" : form) + " have no equivalent",
            get("rl") != nullptr
                ? "write records of {prompt, chosen, rejected}; with them use type: user_defined.default"
                : "write records of {prompt, completion}, {messages} or {text}; with them use type: chat_template, "
                  "alpaca or completion");
    }
  }

  /// Fields of preferences.
  void take_pair(const Node& set, const std::string& form, Node& made) {
    const bool chat = form == "chat_template.default";
    Node columns = Node::mapping();
    for (const auto& [name, key, usual] :
         {std::array{"prompt", chat ? "field_messages" : "field_prompt", chat ? "messages" : "prompt"},
          {"chosen", "field_chosen", "chosen"},
          {"rejected", "field_rejected", "rejected"}}) {
      const Node* field = set.find(key);
      columns.set(name, field != nullptr && field->is_string() ? *field : Node::string(usual));
    }
    made.set("columns", std::move(columns));
    if (chat) take_chat_format(set, made);
  }

  static void add_column(Node& made, const char* name, const Node& field) {
    Node columns = Node::mapping();
    columns.set(name, field);
    made.set("columns", std::move(columns));
  }

  void take_chat_format(const Node& set, Node& made) {
    const Node* own = set.find("chat_template");
    const Node* format = own != nullptr && asks_for_something(*own) ? own : get("chat_template");
    if (format == nullptr || format->scalar_text().starts_with("tokenizer_default")) return;  // the model's own
    if (const auto name = word_of("chat_template", *format, kFormats)) made.set("chat_format", Node::string(*name));
  }

  void take_optimizer() {
    const Node* name = get("optimizer");
    std::string type = "adamw";
    if (name != nullptr) {
      const auto found = optimizer_of("optimizer", *name, diagnostics_);
      if (found) type = *found;
    }
    put("optimizer.type", Node::string(type));
    // Transformers' Trainer has 0 where nothing is said.
    const Node* decay = config_.find("weight_decay");
    put("optimizer.weight_decay", decay != nullptr && decay->is_number() ? *decay : Node::floating(0.0));
    if (decay != nullptr && decay->is_number() && decay->as_double() > 0) {
      put("optimizer.no_decay", Node::sequence({Node::string("bias"), Node::string("norm")}));  // as the Trainer
    }
    take_adam(type);
    const Node* schedule = get("lr_scheduler");
    const auto of_schedule = schedule != nullptr ? word_of("lr_scheduler", *schedule, kSchedules) : "cosine";
    put("lr_scheduler.type", Node::string(of_schedule.value_or("cosine")));
    // In Transformers `constant` has no warmup, whatever is said beside it.
    warms_up_ = schedule == nullptr || lower(schedule->scalar_text()) != "constant";
    if (warms_up_ && config_.find("warmup_steps") == nullptr && config_.find("warmup_ratio") == nullptr) {
      put("lr_scheduler.warmup_ratio", Node::floating(0.03));
    }
  }

  /// What the Trainer hands to optimizers of this kind alone.
  void take_adam(const std::string& type) {
    const bool adam = type.starts_with("adamw");
    const Node *beta1 = get("adam_beta1"), *beta2 = get("adam_beta2"), *eps = get("adam_epsilon");
    if ((adam || type == "lion") && (beta1 != nullptr || beta2 != nullptr)) {
      put("optimizer.betas", Node::sequence({beta1 != nullptr ? *beta1 : Node::floating(0.9),
                                             beta2 != nullptr ? *beta2 : Node::floating(0.999)}));
    }
    if (adam && eps != nullptr) put("optimizer.eps", *eps);
  }

  void take_lengths() {
    const Node *size = get("micro_batch_size"), *epochs = get("num_epochs"), *norm = get("max_grad_norm");
    put("training.micro_batch_size", size != nullptr ? *size : Node::integer(1));
    if (epochs != nullptr || get("max_steps") == nullptr) {
      put("training.max_epochs", epochs != nullptr ? *epochs : Node::integer(1));
    }
    if (norm != nullptr || config_.find("max_grad_norm") == nullptr) {
      put("training.clip_grad_norm", norm != nullptr ? *norm : Node::floating(1.0));
    }
  }

  void take_precision() {
    for (const auto& [key, mode] :
         {ImportWords{"bf16", "bf16-mixed"}, {"bfloat16", "bf16-true"}, {"fp16", "16-mixed"}}) {
      const Node* asked = get(key);
      if (asked == nullptr) continue;
      const bool full = asked->is_string() && lower(asked->as_string()) == "full";
      put("precision.mode", Node::string(full ? "bf16-true" : mode));
      break;
    }
    if (const Node* half = get("float16")) {
      error(*half, "weights in float16 have no equivalent", "use fp16: true, or bfloat16: true");
    }
    if (get("gradient_checkpointing") != nullptr) put("activation_checkpointing.mode", Node::string("full"));
  }

  /// A number of steps, a part of the training below 1, or so often in an epoch.
  void take_intervals() {
    for (const auto& [steps, times, path] : {std::array{"eval_steps", "evals_per_epoch", "eval.eval_steps"},
                                             {"save_steps", "saves_per_epoch", "checkpoint.save_steps"}}) {
      if (const Node* number = get(steps)) {
        if (number->is_integer()) {
          put(path, *number);
        } else {
          error(*number, std::string(steps) + " is " + number->scalar_text() + ", a part of the training",
                std::string("write a number of steps, or ") + times + ": 4");
        }
      } else if (const Node* often = get(times); often != nullptr && often->is_number() && often->as_double() > 0) {
        const double part = std::max(1e-4, std::round(1e4 / often->as_double()) / 1e4);
        put(path, Node::string(core::to_json(Node::floating(part), -1) + "ep"));
      }
    }
  }

  void take_loss() {
    const Node* kind = get("rl");
    if (kind == nullptr) return;
    const std::string text = lower(kind->scalar_text());
    if (text != "dpo" && text != "ipo")
      return error(*kind, "rl " + kind->scalar_text() + " has no equivalent", kOneLoss);
    put("loss.type", Node::string("dpo"));
    if (text == "ipo") put("loss.loss_type", Node::string("ipo"));
    if (const Node* beta = get("rl_beta")) put("loss.beta", *beta);
    if (const Node* smoothing = get("dpo_label_smoothing")) put("loss.label_smoothing", *smoothing);
  }

  void take_rest() {
    take_loss();
    if (config_.find("seed") == nullptr) put("seed", Node::integer(42));
    if (const Node* patience = get("early_stopping_patience")) {
      Node stop = Node::mapping();
      stop.set("type", Node::string("early_stopping"));
      stop.set("monitor", Node::string("val/loss"));
      stop.set("patience", *patience);
      put("callbacks", Node::sequence({std::move(stop)}));
    }
    if (const Node* project = get("wandb_project")) {
      Node tracker = Node::mapping();
      tracker.set("type", Node::string("wandb"));
      tracker.set("project", *project);
      if (const Node* entity = get("wandb_entity")) tracker.set("entity", *entity);
      put("trackers", Node::sequence({std::move(tracker)}));
    }
    take_tokenizer();
  }

  void take_tokenizer() {
    const Node *tokens = get("special_tokens"), *folder = get("tokenizer_config");
    const Node* pad = tokens != nullptr ? tokens->find("pad_token") : nullptr;
    if (pad == nullptr && folder == nullptr) return;
    put("tokenizer.type", Node::string("file"));
    put("tokenizer.path", Node::string(model_path((folder != nullptr ? folder : get("base_model"))->scalar_text())));
    if (pad != nullptr) put("tokenizer.pad_token", *pad);
  }

  const Node& config_;
  core::Diagnostics& diagnostics_;
  ImportDraft draft_;
  bool warms_up_ = true;
  Node adapter_;  ///< the block of `adapters`; null: everything is trained
};

}  // namespace

bool is_axolotl(const Node& config) {
  const Node* base = config.find("base_model");
  return base != nullptr && base->is_string();
}

Node recipe_of_axolotl(const Node& config, core::Diagnostics& diagnostics) {
  return Import(config, diagnostics).recipe();
}

}  // namespace runner::cli
