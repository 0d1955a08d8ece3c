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

#include "runner/cli/group/import/factory_data.h"
#include "runner/cli/group/import/factory_v1.h"
#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/launch/command_line.h"
#include "runner/cli/group/import/launch/launcher.h"
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
using words::model_path;
using words::Reader;
using Kind = words::Outcome::Kind;
using Tool = TrainerMethod::Tool;

/// What only arguments of a Trainer, or LLaMA-Factory, are called.
constexpr const char* kOwn[] = {"per_device_train_batch_size", "num_train_epochs", "model_name_or_path",
                                "finetuning_type", "lr_scheduler_type"};

/// What of the Trainer's family LLaMA-Factory alone has.
constexpr const char* kFactory[] = {"stage",   "finetuning_type", "template",      "cutoff_len",
                                    "dataset", "dataset_dir",     "infer_backend", "export_dir"};

bool has_any(const Node& config, std::span<const char* const> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return config.find(key) != nullptr; });
}

/// What a script trains that an import makes no recipe of, by a part of its name.
struct OtherScript {
  const char* name;
  const char* task;  ///< of `roux new`; "" for what roux does not train
};

/// TRL and others train by answers that the model writes meanwhile, or by steps of answers; the examples of
/// Transformers have heads.
constexpr OtherScript kOtherScripts[] = {{"run_glue", "classification"},
                                         {"run_classification", "classification"},
                                         {"run_xnli", "classification"},
                                         {"run_ner", "tags"},
                                         {"run_mlm", "masked_lm"},
                                         {"run_qa", "question_answering"},
                                         {"run_swag", "multiple_choice"},
                                         {"run_summarization", "completion"},
                                         {"run_translation", "completion"},
                                         {"run_plm", ""},
                                         {"run_fim", ""},
                                         {"run_image", ""},
                                         {"run_audio", ""},
                                         {"run_speech", ""},
                                         {"run_mae", ""},
                                         {"run_mim", ""},
                                         {"run_clip", ""},
                                         {"run_object", ""},
                                         {"run_instance", ""},
                                         {"run_semantic", ""},
                                         {"_vlm", ""},
                                         {"grpo", ""},
                                         {"gspo", ""},
                                         {"tpo.py", ""},
                                         {"sdft.py", ""},
                                         {"sdpo.py", ""},
                                         {"ssd.py", ""},
                                         {"ssd_eval", ""},
                                         {"bco.py", ""},
                                         {"gold.py", ""},
                                         {"distillation", ""},
                                         {"ppo", ""},
                                         {"prm", ""},
                                         {"rloo", ""},
                                         {"online", ""},
                                         {"nash", ""},
                                         {"xpo", ""},
                                         {"gkd", ""},
                                         {"minillm", ""}};

const OtherScript* other_script(const std::string& script) {
  const auto found = std::find_if(std::begin(kOtherScripts), std::end(kOtherScripts),
                                  [&](const OtherScript& one) { return script.find(one.name) != std::string::npos; });
  return found == std::end(kOtherScripts) ? nullptr : found;
}

/// True, with an error, for the command line of a script that trains otherwise: its keys are not read.
bool refuse_script(const Node& config, core::Diagnostics& diagnostics) {
  const Node* script = config.find(kScript);
  if (script == nullptr || is_factory_v1(config)) return false;
  const std::string name = core::escape_for_terminal(script->scalar_text());
  const OtherScript* other = other_script(lower(name));
  if (other == nullptr) return false;
  diagnostics.error(script->location(), name + " has no equivalent",
                    *other->task != '\0'
                        ? "`roux new MODEL FILE --task " + std::string(other->task) + "` writes a recipe for it"
                        : "roux trains on the next token, with DPO, CPO, ORPO and KTO, and reward models");
  return true;
}

/// roux's loss of LLaMA-Factory's `pref_loss`.
std::string pair_loss_of(const Node& config) {
  const Node* loss = config.find("pref_loss");
  const std::string name = loss != nullptr ? lower(loss->scalar_text()) : "";
  return name == "orpo" ? "orpo" : name == "simpo" ? "cpo" : "dpo";
}

/// TRL's trainers share most of their arguments: what is left open is told.
void tell_of_sft(const Node& config, core::Diagnostics& diagnostics) {
  static constexpr const char* kOfSft[] = {"packing",           "eval_packing",         "padding_free",
                                           "packing_strategy",  "completion_only_loss", "assistant_only_loss",
                                           "dataset_text_field"};
  if (has_any(config, kOfSft)) return;
  diagnostics.notice(config.location(),
                     "the file does not say which trainer of TRL reads it, and is taken as that of SFT, which learns "
                     "texts, not pairs",
                     "for pairs import its command, such as `trl dpo --config FILE`, from a file of .sh");
}

/// Arguments in a file do not say which program they are for: what the words of one alone have does. `data` of a Hub's
/// name without a word of Transformers' scripts is TRL's, which takes no files.
TrainerMethod method_of(const Node& config, core::Diagnostics& diagnostics) {
  TrainerMethod method;
  method.script = config.find(kScript);
  const std::string script = method.script != nullptr ? lower(method.script->scalar_text()) : "";
  if (is_factory_v1(config)) {
    method.tool = Tool::kFactoryV1;
    method.sets = factory_v1_sets(config, diagnostics);
    const Node* model_class = config.find("model_class");
    const bool has_rewards = model_class != nullptr && model_class->scalar_text() == "cls";
    const bool is_reward = script == "rm" || (method.script == nullptr && has_rewards);
    method.is_of_pairs = is_reward || script == "dpo" || has_pairs(method.sets) ||
                         config.find("pref_loss") != nullptr || config.find("pref_beta") != nullptr;
    method.pair_loss = is_reward ? "reward" : pair_loss_of(config);
    return method;
  }
  const auto is_own = [&](std::string_view table, std::string_view other, const Node::Entry& entry) {
    return words::find(words::table_of(table).words, entry.key) != nullptr &&
           words::find(words::table_of(other).words, entry.key) == nullptr;
  };
  const auto has_own = [&](std::string_view table, std::string_view other) {
    return std::any_of(config.entries().begin(), config.entries().end(),
                       [&](const Node::Entry& entry) { return is_own(table, other, entry); });
  };
  const bool is_command = script == "sft" || script == "dpo" || script == "kto" || script == "reward";
  static constexpr const char* kScripts[] = {"do_train", "block_size", "dataset_config_name", "train_file"};
  const auto in_script = [&](const char* word) { return script.find(word) != std::string::npos; };
  const bool is_unknown = other_script(script) != nullptr;
  const bool of_preferences = in_script("dpo") || in_script("cpo") || in_script("orpo") || in_script("kto");
  const bool of_rewards = in_script("reward") && !of_preferences && !is_unknown;
  const bool of_pairs = of_preferences || of_rewards;
  const bool is_of_trl = is_command || has_own("trl", "trainer") || of_pairs || in_script("sft");
  if (script.find(".py") == std::string::npos && has_any(config, kFactory)) {
    method.tool = Tool::kFactory;
  } else if (is_of_trl ||
             (method.script == nullptr && config.find("dataset_name") != nullptr && !has_any(config, kScripts))) {
    method.tool = Tool::kTrl;
  }
  const auto asks = [&](const char* key) {
    const Node* value = config.find(key);
    return value != nullptr && words::asks_for_something(*value);
  };
  if (method.is_factory()) {
    const Node* stage = config.find("stage");
    const bool is_kto = stage != nullptr && stage->scalar_text() == "kto";
    method.is_of_pairs = is_kto || (stage != nullptr && stage->scalar_text() == "dpo");
    method.is_pretraining = stage != nullptr && stage->scalar_text() == "pt";
    method.pair_loss = is_kto ? "kto" : pair_loss_of(config);
  } else {
    const bool is_cpo = method.script != nullptr ? in_script("cpo") : asks("cpo_alpha") || asks("simpo_gamma");
    const bool is_reward = method.script != nullptr ? of_rewards : asks("center_rewards_coefficient");
    method.is_of_pairs = method.script != nullptr ? of_pairs : is_cpo || is_reward || asks("beta");
    if (in_script("orpo")) method.pair_loss = "orpo";
    if (in_script("kto")) method.pair_loss = "kto";
    if (is_cpo) method.pair_loss = "cpo";
    if (is_reward) method.pair_loss = "reward";
    if (method.is_trl() && method.script == nullptr && !method.is_of_pairs) tell_of_sft(config, diagnostics);
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

void take_model(Reader& reader, const TrainerMethod& method) {
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
  const Node *token = method.is_trl() ? reader.get("eos_token") : nullptr, *folder = model;
  for (const char* key : {"tokenizer_name", "tokenizer_name_or_path"}) {
    if (reader.get(key) != nullptr) folder = reader.get(key);
  }
  if (token != nullptr) compare_token(reader, *token, "eos_token", "eos_token", folder->scalar_text());
}

/// Adapters to begin from, which say what they are themselves.
void take_adapters(Reader& reader, const TrainerMethod& /*method*/) {
  const Node* paths = reader.get("adapter_name_or_path");
  if (paths == nullptr || reader.draft().find("adapters") == nullptr) return;
  Node adapters = Node::sequence();
  for (const Node& path : items_of(*paths)) {
    Node adapter = Node::mapping();
    adapter.set("type", Node::string("lora"));
    if (!adapters.items().empty())
      adapter.set("name", Node::string("adapter-" + std::to_string(adapters.items().size() + 1)));
    adapter.set("path", Node::string(model_path(path.scalar_text())));
    adapters.items().push_back(std::move(adapter));
  }
  reader.draft().put("adapters", std::move(adapters));
}

/// `loss_type` and `loss_weights` of pairs; whether `label_smoothing` counts.
bool take_losses(Reader& reader, const TrainerMethod& method) {
  const char* key = method.is_factory() ? "pref_loss" : "loss_type";
  const Node *kinds = reader.get(key), *weights = method.is_trl() ? reader.get("loss_weights") : nullptr;
  if (method.is_factory() && kinds != nullptr && !kinds->is_string()) {
    reader.refuse(*kinds, key, "pref_loss must be the name of one loss", "write pref_loss: sigmoid");
    return false;
  }
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
    if (loss == "simpo") {
      reader.refuse(names[i], key, key + std::string(" ") + names[i].scalar_text() + " is one of CPO",
                    "import it as the command line of cpo.py, or with cpo_alpha");
      continue;
    }
    smooths = smooths || loss == "robust" || loss == "exo_pair";
    is_plain = is_plain || loss == "sigmoid";
    losses.set(loss, factors.empty() ? Node::floating(1.0) : factors[i]);
  }
  if (const Node* likelihood = method.is_factory() ? reader.get("pref_ftx") : nullptr) {
    losses.set("sft", *likelihood);
    reader.note("pref_ftx", Kind::kChanged, "loss.losses: sft; the mean is over all tokens, and not over pairs");
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

void take_dpo(Reader& reader, const TrainerMethod& method) {
  const bool smooths = take_losses(reader, method);
  if (!method.is_trl()) return;
  const Node* smoothing = reader.get("label_smoothing");
  if (!smooths) reader.note("label_smoothing", Kind::kNoEffect, "TRL smooths robust and exo_pair alone");
  if (smooths && smoothing != nullptr) reader.draft().put("loss.label_smoothing", *smoothing);
}

/// CPO and SimPO. AlphaPO is SimPO without the likelihood, with `alpha`.
void take_cpo(Reader& reader, const TrainerMethod& method) {
  if (method.is_factory()) {
    const Node* likelihood = reader.get("pref_ftx");
    reader.draft().put("loss.loss_type", Node::string("simpo"));
    reader.draft().put("loss.cpo_alpha", likelihood != nullptr ? *likelihood : Node::floating(0.0));
    if (likelihood != nullptr) {
      reader.note("pref_ftx", Kind::kChanged, "loss.cpo_alpha; the mean is over all tokens, and not over pairs");
    }
    return;
  }
  if (const Node* smoothing = reader.get("label_smoothing")) reader.draft().put("loss.label_smoothing", *smoothing);
  const Node* kind = reader.get("loss_type");
  if (kind == nullptr) return;
  const std::string name = lower(kind->scalar_text());
  static constexpr const char* kKinds[] = {"sigmoid", "hinge", "ipo", "simpo", "alphapo"};
  if (std::find(std::begin(kKinds), std::end(kKinds), name) == std::end(kKinds)) {
    return reader.refuse(*kind, "loss_type", "loss_type " + core::escape_for_terminal(name) + " is none of CPO",
                         "use sigmoid, hinge, ipo, simpo or alphapo");
  }
  if (name == "alphapo") reader.draft().put("loss.cpo_alpha", Node::floating(0.0));
  reader.draft().put("loss.loss_type", Node::string(name == "alphapo" ? "simpo" : name));
}

void take_orpo(Reader& reader, const TrainerMethod& method) {
  reader.note("loss_type", Kind::kNoEffect, "ORPO does not read it");
  const Node* likelihood = method.is_factory() ? reader.get("pref_ftx") : nullptr;
  if (likelihood == nullptr) return;
  reader.refuse(*likelihood, "pref_ftx", "pref_ftx adds to the likelihood that ORPO has already", "remove pref_ftx");
}

/// Of single labelled records, or of pairs, which are two of them.
void take_kto(Reader& reader, const TrainerMethod& method) {
  for (const char* key : {"streaming", "dataset_streaming"}) {
    if (const Node* streaming = reader.get(key)) refuse_stream_of_labels(reader, *streaming, key);
  }
  if (const Node* likelihood = reader.get("pref_ftx"))
    reader.refuse(*likelihood, "pref_ftx", "pref_ftx adds a likelihood to KTO, which roux does not", "remove pref_ftx");
  const Node* kind = reader.get("loss_type");
  if (kind == nullptr) return;
  const std::string name = lower(kind->scalar_text());
  if (name == "kto" || name == "apo_zero_unpaired") {
    return reader.draft().put("loss.loss_type", *taken(reader, method, "loss_type", *kind));
  }
  reader.refuse(*kind, "loss_type", "loss_type " + core::escape_for_terminal(name) + " is none of KTO",
                "use kto or apo_zero_unpaired");
}

/// Of the head that tells the rewards, see add_head().
void take_reward(Reader& reader, const TrainerMethod& method) {
  if (const Node* kind = method.is_trl() ? reader.get("loss_type") : nullptr) {
    reader.refuse(*kind, "loss_type", "a reward model has one loss, and loss_type names another",
                  "remove it, or train with `trl dpo`");
  }
  if (method.is_factory() || reader.draft().find("adapters") == nullptr) return;
  const Node *task = reader.get("lora_task_type"), *saved = reader.get("lora_modules_to_save");
  const std::vector<Node> modules = saved != nullptr ? items_of(*saved) : std::vector<Node>();
  const bool is_saved =
      std::any_of(modules.begin(), modules.end(), [](const Node& one) { return one.scalar_text() == "score"; });
  if (is_saved || (task != nullptr && lower(task->scalar_text()) == "seq_cls")) return;
  reader.note("use_peft", Kind::kChanged,
              "adapters; the head of rewards learns, which TRL leaves as it was drawn without lora_task_type SEQ_CLS");
}

/// `init_from` with the head of a reward model, which the file of the model does not have.
void add_head(words::Draft& draft) {
  const Node* path = draft.find("init_from");
  if (path == nullptr || !path->is_string()) return;
  Node block = Node::mapping(path->location());
  block.set("path", *path);
  block.set("head", Node::string("reward"));
  draft.put("init_from", std::move(block));
}

/// False, with an error, for KTO's losses beside pairs.
bool is_of_dpo(Reader& reader) {
  const Node* kind = reader.get("loss_type");
  if (kind == nullptr || !kind->is_string()) return true;
  const std::string name = lower(kind->as_string());
  if (name != "kto" && name != "apo_zero_unpaired") return true;
  reader.refuse(*kind, "loss_type", "loss_type " + name + " is one of KTO", "train with `trl kto`, or use sigmoid");
  return false;
}

void take_pairs(Reader& reader, const TrainerMethod& method) {
  if (method.pair_loss == "orpo") {
    take_orpo(reader, method);
  } else if (method.pair_loss == "cpo") {
    take_cpo(reader, method);
  } else if (method.pair_loss == "kto") {
    take_kto(reader, method);
  } else if (method.is_reward()) {
    take_reward(reader, method);
  } else if (is_of_dpo(reader)) {
    take_dpo(reader, method);
  }
  if (says(reader.config(), "disable_dropout", false) || method.is_factory_v1())
    return reader.note("disable_dropout", Kind::kTaken, "model.dropout: the model's own");
  // TRL and LLaMA-Factory, but its version 1, train on pairs without dropout, that of adapters included.
  reader.draft().put("model.type", Node::string("transformers"));
  reader.draft().put("model.dropout", Node::floating(0.0));
  if (reader.draft().find("adapters[lora].lora_dropout") != nullptr) {
    reader.draft().put("adapters[lora].lora_dropout", Node::floating(0.0));
    reader.note("lora_dropout", Kind::kNoEffect, "pairs are trained without dropout");
  }
}

void take_method(Reader& reader, const TrainerMethod& method) {
  if (method.script != nullptr && !method.is_factory_v1()) {
    const std::string name = core::escape_for_terminal(method.script->scalar_text());
    if (!method.is_trl() && name.ends_with(".py") && name.find("run_clm") == std::string::npos) {
      reader.diagnostics().warning(method.script->location(),
                                   "what " + name +
                                       " does by itself is not known: its arguments are read as those of "
                                       "Transformers' run_clm.py, which trains on the next token",
                                   "compare the recipe with the script");
    }
  }
  const Node* model_class = method.is_factory_v1() ? reader.get("model_class") : nullptr;
  if (model_class != nullptr && model_class->scalar_text() == "cls" && !method.is_reward()) {
    reader.refuse(*model_class, "model_class", "model_class cls is a reward model, which `llamafactory-cli rm` trains",
                  "use model_class: llm, or the command rm");
  }
  if (method.is_trl() && reader.get("learning_rate") == nullptr)
    reader.draft().put("optimizer.lr", Node::floating(method.is_reward() ? 1e-4 : method.is_of_pairs ? 1e-6 : 2e-5));
  if (const Node* rate = reader.get("learning_rate")) reader.draft().put("optimizer.lr", *rate);
  if (method.is_of_pairs) return take_pairs(reader, method);
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
  return {
      {"model", with(take_model)},
      {"adapter", with(take_adapters)},
      {"method", with(take_method)},
      {"data", with(method.is_factory_v1() ? take_factory_v1_data
                    : method.is_factory()  ? take_factory_data
                                           : take_trainer_data)},
      {"optimizer", method.is_factory_v1() ? Reader::Rule(take_factory_v1_optimizer) : with(take_trainer_optimizer)},
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
  switch (method.tool) {
    case Tool::kTrainer: break;
    case Tool::kTrl: return "trl";
    case Tool::kFactory: return "llama_factory";
    case Tool::kFactoryV1: return "llama_factory_v1";
  }
  return "trainer";
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

bool is_trainer(const Node& config) { return config.is_mapping() && (has_any(config, kOwn) || is_factory_v1(config)); }

Node recipe_of_trainer(const Node& config, std::vector<words::Row>& rows, core::Diagnostics& diagnostics) {
  if (refuse_script(config, diagnostics)) return Node::mapping();
  const TrainerMethod method = method_of(config, diagnostics);
  Node arguments = config;
  arguments.erase(kScript);
  arguments.erase(kLauncher);
  const auto rules = rules_of(method);
  Reader reader(words::table_of(words_of(method)), arguments, rules, diagnostics,
                {{"loss", method.is_of_pairs ? method.pair_loss : ""}});
  if (method.is_of_pairs) reader.draft().put("loss.type", Node::string(method.pair_loss));
  reader.read();
  if (method.is_reward()) add_head(reader.draft());
  rows = reader.rows();
  Node recipe = reader.draft().ordered();
  refuse_empty_numbers(arguments, words::table_of(words_of(method)), recipe, rows, diagnostics);
  keep_switches(arguments, words::table_of(words_of(method)), recipe, rows);
  if (const Node* file = method.is_factory_v1() ? reader.get("dist_config.config_file") : nullptr) {
    Node sharding = Node::mapping();
    sharding.set("deepspeed", *file, file->location());
    take_sharding(sharding, recipe, rows, diagnostics);
  } else {
    take_sharding(config, recipe, rows, diagnostics);
  }
  if (const Node* launcher = config.find(kLauncher)) {
    take_launcher(*launcher, /*is_trainer=*/true, recipe, rows, diagnostics);
  }
  return recipe;
}

}  // namespace runner::cli
