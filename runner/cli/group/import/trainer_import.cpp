#include "runner/cli/group/import/trainer_import.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/cli/group/import/command_line.h"
#include "runner/cli/group/import/import_draft.h"
#include "runner/cli/group/import/launcher.h"
#include "runner/cli/group/import/trainer_arguments.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::lower;
using core::Node;

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
    Node recipe = draft_.ordered();
    take_sharding(config_, recipe, diagnostics_);
    if (const Node* launcher = config_.find(kLauncher)) take_launcher(*launcher, recipe, diagnostics_);
    return recipe;
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

  /// Adapters to begin from, which say what they are themselves.
  void take_adapter_folders(const Node& paths) {
    Node adapters = Node::sequence();
    for (const std::string& path : list_of(paths)) {
      Node adapter = Node::mapping();
      adapter.set("type", Node::string("lora"));
      if (!adapters.items().empty())
        adapter.set("name", Node::string("adapter-" + std::to_string(adapters.items().size() + 1)));
      adapter.set("path", Node::string(model_path(path)));
      adapters.items().push_back(std::move(adapter));
    }
    draft_.put("adapters", std::move(adapters));
  }

  void take_adapter() {
    const Node* type = get("finetuning_type");
    if (type != nullptr && type->scalar_text() != "lora" && type->scalar_text() != "full")
      return error(*type, "finetuning_type " + type->scalar_text() + " has no equivalent", "use lora or full");
    const bool adapts = is_factory() ? type == nullptr || type->scalar_text() == "lora" : get("use_peft") != nullptr;
    if (!adapts) return;
    if (const Node* paths = get("adapter_name_or_path")) return take_adapter_folders(*paths);
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
    draft_.put("adapters", Node::sequence({std::move(adapter)}));
  }

  /// Arguments in a file do not say which script they are for: a beta alone is of DPO.
  bool is_dpo() const {
    if (const Node* stage = get("stage")) return stage->scalar_text() == "dpo";
    const Node* script = get(kScript);
    if (script != nullptr) return names_kind(*script, "dpo");
    return get("beta") != nullptr;
  }

  static bool names_kind(const Node& script, std::string_view kind) {
    return lower(script.scalar_text()).find(kind) != std::string::npos;
  }

  /// Whether the script trains in a way that roux has.
  bool knows_script() {
    const Node* script = get(kScript);
    if (script == nullptr || names_kind(*script, "dpo")) return true;
    for (const char* kind : {"orpo", "kto", "cpo", "grpo", "ppo", "reward", "rloo"}) {
      if (!names_kind(*script, kind)) continue;
      error(*script, script->scalar_text() + " has no equivalent", "roux trains on the next token, or with DPO");
      return false;
    }
    return true;
  }

  void take_loss() {
    const Node* stage = get("stage");
    if (stage != nullptr) {
      const std::string text = stage->scalar_text();
      if (text != "pt" && text != "sft" && text != "dpo")
        return error(*stage, "stage " + text + " has no equivalent", "use pt, sft or dpo");
    }
    if (!knows_script()) return;
    if (!is_dpo()) {
      const Node* kind = get("loss_type");
      if (kind != nullptr && kind->scalar_text() != "nll")
        error(*kind, "loss_type " + kind->scalar_text() + " has no equivalent", "remove it: the loss is cross entropy");
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
    if (train.empty()) {
      if (get("model_name_or_path") != nullptr)
        diagnostics_.warning(config_.location(), "the arguments name no data",
                             "add data: {train: {type: jsonl, path: FILE.jsonl}} to the recipe");
      return;
    }
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
    draft_.put("data.train", joined_sets(train, border.empty() ? "" : ":" + border));
    if (!val.empty()) {
      draft_.put("data.val", joined_sets(val, ""));
    } else if (!border.empty()) {
      draft_.put("data.val", joined_sets(train, border + ":"));
    }
    if (const Node* most = get("max_samples")) {
      diagnostics_.warning(most->location(), "max_samples is left out: all records are used",
                           "take the first ones with {type: subset, of: ..., samples: " + most->scalar_text() + "}");
    }
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
    } else if (!lines || is_trl("sft") || is_trl("dpo")) {
      made.set("max_seq_len", Node::integer(1024));  // run_clm.py's and TRL's
    }
    if (!lines) return;
    const Node* stage = get("stage");
    const bool pretrains = stage != nullptr && stage->scalar_text() == "pt" && config_.find("packing") == nullptr;
    if ((get("packing") != nullptr || pretrains) && !is_dpo()) made.set("packing", Node::boolean(true));
    if (get("train_on_prompt") != nullptr || is_false("completion_only_loss")) made.set("loss_on", Node::string("all"));
    if (first_of({"streaming", "dataset_streaming"}) != nullptr) made.set("streaming", Node::boolean(true));
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
    if (text.ends_with(".jsonl") || text.ends_with(".json") || text.ends_with(".gz")) {
      made.set("path", name);
    } else if (fs::is_directory(text, failed)) {
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
    const std::string prompt = column("prompt"), query = column("query"), response = column("response");
    const Node* stage = get("stage");
    if (stage != nullptr && stage->scalar_text() == "pt") {
      if (!prompt.empty()) add_column(made, "text", prompt);
      return;
    }
    if (!query.empty() && (is_dpo() || prompt != "instruction" || query != "input")) {
      diagnostics_.warning(entry->location(), "the column " + query + " of a query is left out",
                           "join it with " + (prompt.empty() ? std::string("the prompt") : prompt) + " in the data");
    }
    if (!prompt.empty() && (is_dpo() || prompt != "instruction")) add_column(made, "prompt", prompt);
    if (!response.empty() && response != "output") add_column(made, "completion", response);
    for (const char* name : {"messages", "chosen", "rejected"}) {
      const std::string field = column(name);
      if (!field.empty() && field != name && field != "conversations") add_column(made, name, field);
    }
  }

  /// `trl` itself, not a script of one's own.
  bool is_trl(const char* command) const {
    const Node* script = get(kScript);
    return script != nullptr && script->scalar_text() == command;
  }

  double usual_rate() const { return is_trl("sft") ? 2e-5 : is_trl("dpo") ? 1e-6 : 5e-5; }

  void take_optimizer() {
    const Node* name = get("optim");
    std::string type = get("adafactor") != nullptr ? "adafactor" : "adamw";
    if (name != nullptr) type = optimizer_of("optim", *name, diagnostics_).value_or(type);
    draft_.put("optimizer.type", Node::string(type));
    const Node* rate = get("learning_rate");
    draft_.put("optimizer.lr", rate != nullptr ? *rate : Node::floating(usual_rate()));
    const Node* decay = config_.find("weight_decay");
    const bool decays = type != "rprop" && !type.ends_with("lomo");
    const bool is_given = decay != nullptr && decay->is_number();
    if (decays) draft_.put("optimizer.weight_decay", is_given ? *decay : Node::floating(0.0));
    if (decays && is_given && decay->as_double() > 0)
      draft_.put("optimizer.no_decay", texts({"bias", "norm"}));  // what the Trainer exempts
    if (type == "adafactor") {
      diagnostics_.notice((name != nullptr ? *name : config_).location(),
                          "adafactor is that of PyTorch, whose steps are scaled by the size of a weight; Transformers' "
                          "with a learning rate is not");
    }
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
    const auto positive = [this](const char* name) {
      const Node* value = get(name);
      return value != nullptr && value->is_number() && value->as_double() > 0 ? value : nullptr;
    };
    // `constant` has no warmup, whatever is said beside it; steps go before a ratio.
    const bool warms_up = written == nullptr || lower(written->scalar_text()) != "constant";
    if (const Node* steps = positive("warmup_steps"); steps != nullptr && warms_up) {
      // Below 1 it is a part of the training, in version 5.
      draft_.put(steps->as_double() < 1 ? "lr_scheduler.warmup_ratio" : "lr_scheduler.warmup_steps", *steps);
    } else if (const Node* ratio = positive("warmup_ratio"); ratio != nullptr && warms_up) {
      draft_.put("lr_scheduler.warmup_ratio", *ratio);
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
    const Node* const written = first_of({"pure_bf16", "bf16", "fp16"});
    if (mode != nullptr) draft_.put("precision.mode", Node::string(mode, written->location()));
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
    if (const Node* most = get("max_eval_samples")) {  // one batch that counts, whatever a pass takes
      draft_.put("eval.max_batches", Node::integer(1));
      draft_.put("eval.counted_batch_size", *most);
    }
    const Node* save = strategy_of("save_strategy");
    const std::string kind = save != nullptr ? lower(save->scalar_text()) : "steps";
    if (kind == "best") draft_.put("checkpoint.save_best", Node::boolean(true));
    take_interval(save, "save_steps", 500, "checkpoint.save_steps");
    if (const Node* metric = get("metric_for_best_model")) {
      std::string name = metric->scalar_text();
      if (name.starts_with("eval_")) name = name.substr(5);
      draft_.put("checkpoint.monitor", Node::string("val/" + name));
      if (name == "accuracy" || name == "perplexity") draft_.put("eval.metrics", Node::string(name));
    }
    const Node* greater = config_.find("greater_is_better");
    if (greater != nullptr && greater->is_bool() && get("metric_for_best_model") != nullptr)
      draft_.put("checkpoint.mode", Node::string(greater->as_bool() ? "max" : "min"));
    if (const Node* part = get("logging_steps"); part != nullptr && part->is_number() && part->as_double() < 1)
      error(*part, "logging_steps is " + part->scalar_text() + ", a part of the training", "write a number of steps");
    const Node* logging = strategy_of("logging_strategy");
    if (logging == nullptr || lower(logging->scalar_text()) == "steps")
      draft_.put("logging_steps", Node::integer(logging_steps()));
  }

  int logging_steps() const {
    const Node* steps = get("logging_steps");
    const int usual = is_trl("sft") || is_trl("dpo") ? 10 : 500;
    return steps != nullptr && steps->is_integer() ? static_cast<int>(steps->as_integer()) : usual;
  }

  void take_rest() {
    const Node* seed = config_.find("seed");
    draft_.put("seed", seed != nullptr && seed->is_integer() ? *seed : Node::integer(42));
    if (const Node* written = get("run_name")) {
      std::string name = written->scalar_text().substr(0, 100);
      for (char& c : name) {
        const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
        if (!kept) c = '-';
      }
      draft_.put("run_name", Node::string(name));
    }
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

}  // namespace

bool is_trainer(const Node& config) {
  return config.is_mapping() &&
         std::any_of(std::begin(kOwn), std::end(kOwn), [&](const char* key) { return config.find(key) != nullptr; });
}

Node recipe_of_trainer(const Node& config, core::Diagnostics& diagnostics) {
  return Import(config, diagnostics).recipe();
}

}  // namespace runner::cli
