#include "runner/cli/group/import/trainer_import.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/cli/group/import/command_line.h"
#include "runner/cli/group/import/factory_data.h"
#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/launcher.h"
#include "runner/cli/group/import/trainer_data.h"
#include "runner/cli/group/import/trainer_method.h"
#include "runner/cli/group/import/trainer_rules.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using core::lower;
using core::Node;
using words::items_of;
using words::Reader;
using Kind = words::Outcome::Kind;
using Tool = TrainerMethod::Tool;

/// What only arguments of a Trainer, or LLaMA-Factory, are called.
constexpr const char* kOwn[] = {
    "per_device_train_batch_size", "num_train_epochs", "model_name_or_path", "finetuning_type",
    "lr_scheduler_type",           "model_class",      "train_dataset",      "peft_config"};

/// What of the Trainer's family LLaMA-Factory alone has.
constexpr const char* kFactory[] = {"stage",      "finetuning_type", "template",      "cutoff_len",
                                    "dataset",    "dataset_dir",     "infer_backend", "model_class",
                                    "export_dir", "train_dataset",   "peft_config"};

bool has_any(const Node& config, std::span<const char* const> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return config.find(key) != nullptr; });
}

/// Arguments in a file do not say which program they are for: what the words of one alone have does. `data` of a Hub's
/// name without a word of Transformers' scripts is TRL's, which takes no files.
TrainerMethod method_of(const Node& config) {
  TrainerMethod method;
  method.script = config.find(kScript);
  const std::string script = method.script != nullptr ? lower(method.script->scalar_text()) : "";
  const auto is_own = [&](std::string_view table, std::string_view other, const Node::Entry& entry) {
    return words::find(words::table_of(table).words, entry.key) != nullptr &&
           words::find(words::table_of(other).words, entry.key) == nullptr;
  };
  const auto has_own = [&](std::string_view table, std::string_view other) {
    return std::any_of(config.entries().begin(), config.entries().end(),
                       [&](const Node::Entry& entry) { return is_own(table, other, entry); });
  };
  const bool is_command = script == "sft" || script == "dpo";
  static constexpr const char* kScripts[] = {"do_train", "block_size", "dataset_config_name", "train_file"};
  const bool is_of_trl = is_command || has_own("trl", "trainer") || script.find("dpo") != std::string::npos ||
                         script.find("sft") != std::string::npos;
  if (script.find(".py") == std::string::npos && has_any(config, kFactory)) {
    method.tool = Tool::kFactory;
  } else if (is_of_trl ||
             (method.script == nullptr && config.find("dataset_name") != nullptr && !has_any(config, kScripts))) {
    method.tool = Tool::kTrl;
  }
  if (method.is_factory()) {
    const Node* stage = config.find("stage");
    method.is_dpo = stage != nullptr && stage->scalar_text() == "dpo";
    method.is_pretraining = stage != nullptr && stage->scalar_text() == "pt";
  } else {
    const Node* beta = config.find("beta");
    method.is_dpo = method.script != nullptr ? script.find("dpo") != std::string::npos
                                             : beta != nullptr && words::asks_for_something(*beta);
  }
  return method;
}

/// A path of the Hub with the revision.
Node path_of(Reader& reader, const Node& name) {
  const Node* revision = reader.get("model_revision");
  std::string path = model_path(name.scalar_text());
  const bool is_main = revision == nullptr || revision->scalar_text() == "main";
  if (!is_main && path.starts_with("hf://")) path += "@" + revision->scalar_text();
  return Node::string(path, name.location());
}

void take_model(Reader& reader, const TrainerMethod& /*method*/) {
  const Node* model = reader.get("model_name_or_path");
  if (model == nullptr) return;
  reader.draft().put("recipe_version", Node::integer(1));
  reader.draft().put("init_from", path_of(reader, *model));
  for (const char* key : {"tokenizer_name", "tokenizer_name_or_path"}) {
    const Node* tokenizer = reader.get(key);
    if (tokenizer == nullptr) continue;
    reader.draft().put("tokenizer.type", Node::string("file"));
    reader.draft().put("tokenizer.path", Node::string(model_path(tokenizer->scalar_text()), tokenizer->location()));
  }
}

/// Adapters to begin from, which say what they are themselves.
void take_adapter_folders(Reader& reader, const Node& paths) {
  Node adapters = Node::sequence();
  for (const Node& path : items_of(paths)) {
    Node adapter = Node::mapping();
    adapter.set("type", Node::string("lora"));
    if (!adapters.items().empty())
      adapter.set("name", Node::string("adapter-" + std::to_string(adapters.items().size() + 1)));
    adapter.set("path", Node::string(model_path(path.scalar_text())));
    adapters.items().push_back(std::move(adapter));
  }
  reader.draft().put("adapters", std::move(adapters));
}

/// `all` and `all-linear` as one word, names as a list.
Node layers_of(const Node& written) {
  const std::vector<Node> names = items_of(written);
  const std::string first = names.size() == 1 ? names.front().scalar_text() : "";
  return first == "all" || first == "all-linear" ? Node::string("all-linear") : Node::sequence(names);
}

/// LLaMA-Factory trains an adapter where it says nothing; the others where use_peft says so.
void take_adapter(Reader& reader, const TrainerMethod& method) {
  const Node* type = reader.get("finetuning_type");
  const bool adapts =
      method.is_factory() ? type == nullptr || lower(type->scalar_text()) == "lora" : reader.get("use_peft") != nullptr;
  static constexpr const char* kKeys[] = {
      "lora_r",     "lora_rank", "lora_alpha",        "lora_dropout",        "lora_target", "lora_target_modules",
      "use_rslora", "use_dora",  "additional_target", "lora_modules_to_save"};
  if (!adapts) {
    for (const char* key : kKeys)
      reader.note(key, Kind::kNoEffect,
                  method.is_factory() ? "finetuning_type is not lora" : "without use_peft it says nothing");
    return;
  }
  if (const Node* paths = reader.get("adapter_name_or_path")) {
    for (const char* key : kKeys) reader.note(key, Kind::kNoEffect, "the adapter's folder says it");
    return take_adapter_folders(reader, *paths);
  }
  const auto first_of = [&](const char* one, const char* other) {
    return reader.get(one) != nullptr ? reader.get(one) : reader.get(other);
  };
  const auto put = [&](const char* key, Node value) {
    reader.draft().put(std::string("adapters[lora].") + key, std::move(value));
  };
  const Node* rank = first_of("lora_r", "lora_rank");
  const Node r = rank != nullptr ? *rank : Node::integer(method.is_factory() ? 8 : 16);
  put("r", r);
  const std::int64_t twice = r.is_integer() ? 2 * r.as_integer() : 32;
  const Node* alpha = reader.get("lora_alpha");
  put("lora_alpha", alpha != nullptr ? *alpha : Node::integer(method.is_factory() ? twice : 32));
  const Node* dropout = reader.config().find("lora_dropout");
  const bool has_dropout = dropout != nullptr && dropout->is_number();
  if (has_dropout || !method.is_factory()) put("lora_dropout", has_dropout ? *dropout : Node::floating(0.05));
  const Node* targets = first_of("lora_target", "lora_target_modules");
  if (targets != nullptr || method.is_factory())
    put("target_modules", targets != nullptr ? layers_of(*targets) : Node::string("all-linear"));
  if (const Node* saved = first_of("additional_target", "lora_modules_to_save"))
    put("modules_to_save", Node::sequence(items_of(*saved)));
  for (const char* key : {"use_rslora", "use_dora"}) {
    if (const Node* value = reader.get(key)) put(key, *value);
  }
}

/// `loss_type` and `loss_weights` of pairs; whether `label_smoothing` counts.
bool take_losses(Reader& reader, const TrainerMethod& method) {
  const char* key = method.is_factory() ? "pref_loss" : "loss_type";
  const Node *kinds = reader.get(key), *weights = method.is_trl() ? reader.get("loss_weights") : nullptr;
  const std::vector<Node> names = kinds != nullptr ? items_of(*kinds) : std::vector{Node::string("sigmoid")};
  const std::vector<Node> factors = weights != nullptr ? items_of(*weights) : std::vector<Node>();
  if (!factors.empty() && factors.size() != names.size()) {
    reader.refuse(*weights, "loss_weights",
                  "loss_weights has " + std::to_string(factors.size()) + " weights, but loss_type names " +
                      core::counted(static_cast<std::int64_t>(names.size()), "loss", "losses"),
                  "write one weight for each loss of loss_type");
    return false;
  }
  bool smooths = false, is_plain = false;
  Node losses = Node::mapping();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto name = taken(reader, method, key, names[i]);
    if (!name || !name->is_string()) continue;  // refused by the table, or the tool's usual one
    const std::string loss = name->as_string();
    smooths = smooths || loss == "robust" || loss == "exo_pair";
    is_plain = is_plain || loss == "sigmoid";
    losses.set(loss, factors.empty() ? Node::floating(1.0) : factors[i]);
  }
  const bool is_one = losses.entries().size() == 1 && factors.empty();
  if (is_one && losses.entries()[0].key != "sigmoid")
    reader.draft().put("loss.loss_type", Node::string(losses.entries()[0].key));
  if (!is_one && !losses.entries().empty()) reader.draft().put("loss.losses", std::move(losses));
  const Node* smoothing = reader.get("label_smoothing");
  if (method.is_trl() && smooths && is_plain && smoothing != nullptr) {
    reader.refuse(*smoothing, "label_smoothing", "TRL smooths robust and exo_pair, and not sigmoid beside them",
                  "remove sigmoid from loss_type, or label_smoothing");
  }
  return smooths || !method.is_trl();
}

void take_pairs(Reader& reader, const TrainerMethod& method) {
  reader.draft().put("loss.type", Node::string("dpo"));
  for (const auto& [key, path] : {std::pair{"beta", "loss.beta"},
                                  {"pref_beta", "loss.beta"},
                                  {"ld_alpha", "loss.ld_alpha"},
                                  {"discopop_tau", "loss.discopop_tau"}}) {
    if (const Node* value = reader.get(key)) reader.draft().put(path, *value);
  }
  const bool smooths = take_losses(reader, method);
  const char* key = method.is_factory() ? "dpo_label_smoothing" : "label_smoothing";
  if (!smooths) reader.note(key, Kind::kNoEffect, "TRL smooths robust and exo_pair alone");
  if (const Node* smoothing = reader.get(key); smoothing != nullptr && smooths)
    reader.draft().put("loss.label_smoothing", *smoothing);
  if (says(reader.config(), "disable_dropout", false)) return;
  // TRL and LLaMA-Factory train on pairs without dropout, that of adapters included.
  reader.draft().put("model.type", Node::string("transformers"));
  reader.draft().put("model.dropout", Node::floating(0.0));
  if (reader.draft().find("adapters[lora].lora_dropout") != nullptr) {
    reader.draft().put("adapters[lora].lora_dropout", Node::floating(0.0));
    reader.note("lora_dropout", Kind::kNoEffect, "pairs are trained without dropout");
  }
}

void take_method(Reader& reader, const TrainerMethod& method) {
  if (method.script != nullptr && !method.is_dpo) {
    const std::string script = lower(method.script->scalar_text());
    for (const char* kind : {"orpo", "kto", "cpo", "grpo", "ppo", "reward", "rloo"}) {
      if (script.find(kind) == std::string::npos) continue;
      return reader.refuse(*method.script, "", method.script->scalar_text() + " has no equivalent",
                           "roux trains on the next token, or with DPO");
    }
  }
  if (method.is_trl() && reader.get("learning_rate") == nullptr)
    reader.draft().put("optimizer.lr", Node::floating(method.is_dpo ? 1e-6 : 2e-5));
  if (const Node* rate = reader.get("learning_rate")) reader.draft().put("optimizer.lr", *rate);
  if (method.is_dpo) return take_pairs(reader, method);
  static constexpr const char* kOfPairs[] = {
      "beta",      "ld_alpha",  "discopop_tau",       "label_smoothing", "loss_weights", "disable_dropout",
      "pref_beta", "pref_loss", "dpo_label_smoothing"};
  for (const char* key : kOfPairs) reader.note(key, Kind::kNoEffect, "of the training on pairs");
  const Node* kind = method.is_trl() ? reader.get("loss_type") : nullptr;
  if (kind != nullptr && taken(reader, method, "loss_type", *kind)) {
    reader.refuse(*kind, "loss_type", "loss_type " + kind->scalar_text() + " is of the training on pairs",
                  "import it as the command line of `trl dpo`, or with beta: 0.1, or remove it");
  }
  if (const Node* smoothing = reader.get("label_smoothing_factor")) {
    reader.draft().put("loss.type", Node::string("cross_entropy"));
    reader.draft().put("loss.label_smoothing", *smoothing);
  }
}

std::map<std::string, Reader::Rule> rules_of(const TrainerMethod& method) {
  const auto with = [&method](void (*rule)(Reader&, const TrainerMethod&)) {
    return [rule, &method](Reader& reader) { rule(reader, method); };
  };
  return {{"model", with(take_model)},
          {"adapter", with(take_adapter)},
          {"method", with(take_method)},
          {"data", with(method.is_factory() ? take_factory_data : take_trainer_data)},
          {"optimizer", with(take_trainer_optimizer)},
          {"schedule", with(take_trainer_schedule)},
          {"lengths", take_trainer_lengths},
          {"precision", with(take_trainer_precision)},
          {"intervals", with(take_trainer_intervals)},
          {"best", take_trainer_best},
          {"trackers", with(take_trainer_trackers)},
          {"run_name", take_trainer_run_name},
          {"sharding", [](Reader&) {}}};  // after the recipe is whole
}

}  // namespace

std::string_view words_of(const TrainerMethod& method) {
  return method.is_factory() ? "llama_factory" : method.is_trl() ? "trl" : "trainer";
}

bool says(const Node& config, std::string_view key, bool value) {
  const Node* written = config.find(key);
  return written != nullptr && written->is_bool() && written->as_bool() == value;
}

std::optional<Node> taken(const Reader& reader, const TrainerMethod& method, std::string_view key, const Node& value) {
  const words::Outcome outcome = reader.outcome_of(*words::find(words::table_of(words_of(method)).words, key), value);
  const bool is_taken = outcome.kind == Kind::kTaken || outcome.kind == Kind::kChanged;
  return is_taken ? outcome.value : std::nullopt;
}

bool is_trainer(const Node& config) { return config.is_mapping() && has_any(config, kOwn); }

Node recipe_of_trainer(const Node& config, std::vector<words::Row>& rows, core::Diagnostics& diagnostics) {
  const TrainerMethod method = method_of(config);
  Node arguments = config;
  arguments.erase(kScript);
  arguments.erase(kLauncher);
  const auto rules = rules_of(method);
  Reader reader(words::table_of(words_of(method)), arguments, rules, diagnostics);
  reader.read();
  rows = reader.rows();
  Node recipe = reader.draft().ordered();
  take_sharding(config, recipe, diagnostics);
  if (const Node* launcher = config.find(kLauncher)) take_launcher(*launcher, recipe, diagnostics);
  return recipe;
}

}  // namespace runner::cli
