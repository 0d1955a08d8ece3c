#include "runner/cli/group/import/axolotl_import.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/group/import/axolotl_data.h"
#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/launch/command_line.h"
#include "runner/cli/group/import/launch/launcher.h"
#include "runner/cli/group/import/trainer_rules.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using core::lower;
using core::Node;
using words::asks_for_something;
using words::model_path;
using words::Reader;
using Kind = words::Outcome::Kind;

/// base_model and its revision. `reinit_weights` takes the configuration and the tokenizer alone.
void take_model(Reader& reader) {
  const Node* base = reader.get("base_model");
  if (base == nullptr || !base->is_string()) {
    return reader.refuse(base != nullptr ? *base : reader.config(), "base_model", "base_model is missing",
                         "write base_model: OWNER/NAME; a file of a machine has none, import the one of the training");
  }
  if (reader.get("learning_rate") == nullptr) {
    reader.refuse(reader.config(), "learning_rate", "learning_rate is missing, which Axolotl does not go without",
                  "write learning_rate: 2e-5, or what the training had");
  }
  const Node* revision = reader.get("model_revision");
  if (revision == nullptr) revision = reader.get("revision_of_model");
  const auto path_of = [&](const Node& name) {
    const std::string path = model_path(name.scalar_text());
    const bool has_revision = revision != nullptr && path.starts_with("hf://");
    return Node::string(has_revision ? path + "@" + revision->scalar_text() : path, name.location());
  };
  const Node* config = reader.get("base_model_config");
  if (reader.get("reinit_weights") == nullptr) {
    if (config != nullptr && config->scalar_text() != base->scalar_text()) {
      reader.refuse(*config, "base_model_config", "base_model_config differs from base_model",
                    "put its config.json into a copy of base_model's folder");
    }
    return reader.draft().put("init_from", path_of(*base));
  }
  const Node& shape = config != nullptr ? *config : *base;
  reader.draft().put("model.type", Node::string("transformers"));
  reader.draft().put("model.config", path_of(shape));
  reader.draft().put("tokenizer.type", Node::string("file"));
  reader.draft().put("tokenizer.path", path_of(*base));
  if (reader.get("rl") == nullptr) reader.draft().put("loss.type", Node::string("cross_entropy"));
}

/// Tokens of the tokenizer's folder that a configuration names, too.
void compare_tokens(Reader& reader, const char* block) {
  const Node *tokens = reader.get(block), *folder = reader.get("tokenizer_config");
  if (folder == nullptr) folder = reader.get("base_model");
  if (tokens == nullptr || !tokens->is_mapping() || folder == nullptr) return;
  for (const char* name : {"eos_token", "bos_token", "unk_token"}) {
    const Node* token = tokens->find(name);
    if (token == nullptr || !asks_for_something(*token)) continue;
    compare_token(reader, *token, std::string(block) + "." + name, name, folder->scalar_text());
  }
}

void take_tokenizer(Reader& reader) {
  const Node *tokens = reader.get("tokens"), *special = reader.get("special_tokens");
  const words::Word* word = words::find(words::table_of("axolotl").words, "special_tokens");
  if (special != nullptr && special->is_mapping())
    reader.read_block(*special, word->inner, "special_tokens.", reader.draft());
  if (tokens != nullptr && tokens->is_mapping()) {  // its former name
    reader.read_block(*tokens, word->inner, "tokens.", reader.draft());
  } else if (tokens != nullptr) {
    reader.refuse(*tokens, "tokens", "tokens has no equivalent: tokens are added in the tokenizer's folder",
                  "add them to a copy of the folder, and name it in tokenizer_config; see `init_from.resize_vocab`");
  }
  for (const char* block : {"special_tokens", "tokens"}) compare_tokens(reader, block);
  const Node* folder = reader.get("tokenizer_config");
  const bool has_own = reader.draft().find("tokenizer") != nullptr;
  if ((!has_own && folder == nullptr) || reader.get("base_model") == nullptr) return;
  Node block = Node::mapping();
  block.set("type", Node::string("file"));
  block.set("path", Node::string(model_path((folder != nullptr ? folder : reader.get("base_model"))->scalar_text())));
  if (const Node* pad = reader.draft().find("tokenizer.pad_token")) block.set("pad_token", *pad);
  reader.draft().put("tokenizer", std::move(block));
}

void take_adapted_layers(Reader& reader) {
  if (reader.get("adapter") == nullptr) return;
  const Node *names = reader.get("lora_target_modules"), *linear = reader.get("lora_target_linear");
  if (linear != nullptr && names != nullptr) {  // Axolotl adds the linear layers to the names
    const auto is_extra = [](const Node& name) {
      return name.scalar_text() == "lm_head" || name.scalar_text().find("embed") != std::string::npos;
    };
    if (!names->is_sequence() || std::any_of(names->items().begin(), names->items().end(), is_extra)) {
      return reader.refuse(*names, "lora_target_modules",
                           "lora_target_modules and lora_target_linear both choose layers", "keep one of them");
    }
    reader.note("lora_target_modules", Kind::kNoEffect, "lora_target_linear adapts every linear layer");
  }
  reader.draft().put("adapters[lora].target_modules", linear != nullptr  ? Node::string("all-linear")
                                                      : names != nullptr ? *names
                                                                         : Node::null());
}

/// Whether `[4-9]+` can be read as `[4-9]`: the least number that it matches with one digit more, such as 444 behind a
/// 4, is that of a layer which no model has.
bool is_one_digit(std::string_view before, char least) {
  constexpr int kLayersMax = 300;
  const std::size_t begin = before.find_last_not_of("0123456789") + 1;
  const std::string number = std::string(before.substr(begin)) + least + least;
  return number.size() > 3 || std::stoi(number) > kLayersMax;
}

/// A pattern of Axolotl's, a regular expression at the beginning of a name, as names with `*`; nothing where it is not
/// as simple as that. `[0-7]` stands for each of its characters.
std::optional<std::vector<std::string>> names_of_pattern(std::string pattern) {
  if (pattern.starts_with("^")) pattern.erase(0, 1);
  const bool is_whole = pattern.ends_with("$");
  if (is_whole) pattern.pop_back();
  if (!is_whole && pattern.ends_with(".*")) pattern.resize(pattern.size() - 2);
  std::vector<std::string> names = {""};
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\' && at + 1 < pattern.size() && pattern[at + 1] == '.') continue;
    std::string choices(1, pattern[at]);
    if (pattern[at] == '[') {
      const std::string_view range = std::string_view(pattern).substr(at);
      if (range.size() < 5 || range[2] != '-' || range[4] != ']' || range[1] > range[3]) return std::nullopt;
      choices.clear();
      for (char c = range[1]; c <= range[3]; ++c) choices += c;
      at += 4;
      if (at + 1 < pattern.size() && pattern[at + 1] == '+') {
        if (!is_one_digit(names.front(), choices.front())) return std::nullopt;
        ++at;
      }
    } else if (std::string_view("()|+?*{}]$^\\").find(pattern[at]) != std::string_view::npos) {
      return std::nullopt;
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const char c : choices) longer.push_back(name + c);
    }
    names = std::move(longer);
  }
  for (std::string& name : names) name += is_whole ? "" : "*";
  return names;
}

void take_trained_parameters(Reader& reader) {
  const Node* patterns = reader.get("unfrozen_parameters");
  if (patterns == nullptr || !patterns->is_sequence()) return;
  if (reader.get("adapter") !=
      nullptr) {  // its names begin with base_model.model, so that patterns of a model match none
    return reader.note("unfrozen_parameters", Kind::kNoEffect, "beside an adapter all weights of the model are frozen");
  }
  Node names = Node::sequence();
  for (const Node& pattern : patterns->items()) {
    const auto found = names_of_pattern(pattern.scalar_text());
    if (!found) {
      reader.refuse(pattern, "unfrozen_parameters",
                    "the pattern " + core::quote(pattern.scalar_text()) + " has no equivalent",
                    "write names in which only `*` matches any text, as `training.train_only` has them");
      continue;
    }
    for (const std::string& name : *found) names.items().push_back(Node::string(name));
  }
  reader.draft().put("training.train_only", std::move(names));
}

/// `max_steps` goes before `num_epochs`.
void take_lengths(Reader& reader) {
  const Node *steps = reader.get("max_steps"), *epochs = reader.get("num_epochs");
  const bool by_steps = steps != nullptr && (!steps->is_number() || steps->as_double() > 0);
  if (by_steps) {
    reader.draft().put("training.max_steps", *steps);
    if (epochs != nullptr) reader.note("num_epochs", Kind::kNoEffect, "max_steps goes before it");
    // Times in an epoch are parts of the whole training there, as long as num_epochs says.
    const double all = epochs != nullptr && epochs->is_number() && epochs->as_double() > 0 ? epochs->as_double() : 1;
    for (const auto& [often, number, path] : {std::array{"evals_per_epoch", "eval_steps", "eval.eval_steps"},
                                              std::array{"saves_per_epoch", "save_steps", "checkpoint.save_steps"}}) {
      const Node* times = reader.get(often);
      if (times == nullptr || !times->is_number() || times->as_double() <= 0 || reader.get(number) != nullptr) continue;
      const double part = std::min(1.0, std::max(1e-4, std::round(1e4 / (times->as_double() * all)) / 1e4));
      reader.draft().put(path, Node::string(core::number_text(part) + "dur"));
    }
  } else {
    reader.draft().put("training.max_epochs", epochs != nullptr ? *epochs : Node::integer(1));
  }
}

void take_warmup(Reader& reader, bool warms_up) {
  const Node *steps = reader.get("warmup_steps"), *ratio = reader.get("warmup_ratio"), *most = reader.get("max_steps");
  if (!warms_up) {
    for (const char* key : {"warmup_steps", "warmup_ratio"})
      reader.note(key, Kind::kNoEffect, "the schedule constant has no warmup");
  } else if (steps != nullptr) {
    // Axolotl makes two of one step; below 1 it is a part of the training.
    const bool is_one = steps->is_integer() && steps->as_integer() == 1;
    const bool is_part = steps->is_number() && !steps->is_integer() && steps->as_double() < 1;
    reader.draft().put(is_part ? "lr_scheduler.warmup_ratio" : "lr_scheduler.warmup_steps",
                       is_one ? Node::integer(2, steps->location()) : *steps);
    if (is_one) reader.note("warmup_steps", Kind::kTaken, "lr_scheduler.warmup_steps: 2, as Axolotl makes of 1");
    if (ratio != nullptr) reader.note("warmup_ratio", Kind::kNoEffect, "warmup_steps goes before it");
  } else if (ratio != nullptr) {
    reader.draft().put("lr_scheduler.warmup_ratio", *ratio);
  } else if (most != nullptr && most->is_integer() && most->as_integer() > 0) {
    // 3 % and at most 100 steps.
    const auto usual = static_cast<std::int64_t>(0.03 * static_cast<double>(most->as_integer()));
    reader.draft().put("lr_scheduler.warmup_steps", Node::integer(std::min<std::int64_t>(usual, 100)));
  } else {
    reader.draft().put("lr_scheduler.warmup_ratio", Node::floating(0.03));
    if (reader.get("base_model") == nullptr) return;  // it does not train
    reader.diagnostics().notice(reader.config().location(),
                                "without a warmup Axolotl takes 3 % of the steps, and at most 100 of them; the recipe "
                                "has 3 %",
                                "of a training of more than 3,333 steps write warmup_steps: 100");
  }
  settle_warmup_of_inverse_sqrt(reader, "lr_scheduler");
}

void take_schedule(Reader& reader) {
  const Node* name = reader.get("lr_scheduler");
  const words::Word* word = words::find(words::table_of("axolotl").words, "lr_scheduler");
  const words::Outcome outcome = name != nullptr ? reader.outcome_of(*word, *name) : words::Outcome{};
  const Node type = outcome.value ? *outcome.value : Node::string("cosine");
  reader.draft().put("lr_scheduler.type", type);
  // In Transformers `constant` has no warmup, whatever is said beside it.
  take_warmup(reader, name == nullptr || lower(name->scalar_text()) != "constant");
  const Node* least = reader.get("cosine_min_lr_ratio");
  if (least == nullptr) return;
  if (type.as_string() == "cosine") {
    reader.draft().put("lr_scheduler.min_lr_ratio", *least);
  } else {
    reader.note("cosine_min_lr_ratio", Kind::kNoEffect, "the schedule is not cosine");
  }
}

/// `bf16: auto` is the default; a GPU of the last years has bfloat16.
void take_precision(Reader& reader) {
  const auto says = [&](const char* key) { return reader.get(key) != nullptr; };
  const Node* bf16 = reader.config().find("bf16");
  const std::string kind = bf16 != nullptr ? lower(bf16->scalar_text()) : "auto";
  const bool is_auto = kind == "auto" && !says("fp16") && !says("float16") && !says("float32") && !says("bfloat16");
  std::string mode = "32-true";
  if (kind == "full") {
    mode = "bf16-true";
  } else if (kind == "true" || is_auto) {
    mode = "bf16-mixed";
  } else if (says("bfloat16")) {
    mode = "bf16-true";
  } else if (says("fp16")) {
    mode = "16-mixed";
  } else if (says("float16")) {
    mode = "16-mixed";
    reader.note("float16", Kind::kChanged, "precision.mode: 16-mixed; weights are kept in 32 bits instead of 16");
  }
  reader.draft().put("precision.mode", Node::string(mode));
  if (bf16 != nullptr && !bf16->is_null() && reader.get("bf16") == nullptr)
    reader.note("bf16", Kind::kTaken, "precision.mode: " + mode);
}

/// The best checkpoint is kept where Axolotl would load it at the end.
void take_best(Reader& reader) {
  const Node *load = reader.get("load_best_model_at_end"), *metric = reader.get("metric_for_best_model");
  const Node *greater = reader.get("greater_is_better"), *part = reader.get("val_set_size");
  const bool holds_out = part != nullptr && part->is_number() && part->as_double() > 0;
  if (load == nullptr || (!holds_out && reader.get("test_datasets") == nullptr)) {
    for (const char* key : {"load_best_model_at_end", "metric_for_best_model", "greater_is_better"})
      reader.note(key, Kind::kNoEffect, "no best model is loaded at the end");
    return;
  }
  std::string name = metric != nullptr ? metric->scalar_text() : "loss";
  if (name.starts_with("eval_")) name.erase(0, 5);
  reader.draft().put("checkpoint.save_best", Node::boolean(true));
  reader.draft().put("checkpoint.monitor", Node::string("val/" + name, load->location()));
  if (name == "accuracy" || name == "perplexity")
    reader.draft().put("eval.metrics", Node::sequence({Node::string(name)}));
  if (greater != nullptr && metric != nullptr) reader.draft().put("checkpoint.mode", Node::string("max"));
}

/// `dpo_loss_type` and its weights.
void take_losses(Reader& reader) {
  const Node *kinds = reader.get("dpo_loss_type"), *weights = reader.get("dpo_loss_weights");
  const std::vector<Node> names = kinds != nullptr ? words::items_of(*kinds) : std::vector{Node::string("sigmoid")};
  const std::vector<Node> factors = weights != nullptr ? words::items_of(*weights) : std::vector<Node>();
  if (!factors.empty() && factors.size() != names.size()) {
    return reader.refuse(*weights, "dpo_loss_weights", "dpo_loss_weights has not one weight for each of dpo_loss_type",
                         "write one weight for each loss");
  }
  const words::Word* word = words::find(words::table_of("axolotl").words, "dpo_loss_type");
  Node losses = Node::mapping();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const words::Outcome outcome = reader.outcome_of(*word, names[i]);
    if (!outcome.value) return;  // refused by the table
    losses.set(outcome.value->as_string(), factors.empty() ? Node::floating(1.0) : factors[i]);
  }
  if (losses.entries().size() > 1 || !factors.empty()) {
    reader.draft().put("loss.losses", std::move(losses));
  } else if (kinds != nullptr) {
    reader.draft().put("loss.loss_type", Node::string(losses.entries()[0].key));
  }
}

/// What `rl` says of the loss and of dropout.
void take_preferences(Reader& reader) {
  const Node* kind = reader.get("rl");
  const Node* loss = reader.draft().find("loss.type");
  if (kind == nullptr || loss == nullptr) return;  // another one is an error already
  if (lower(kind->scalar_text()) == "dpo") take_losses(reader);
  for (const char* key : {"sample_packing", "train_on_inputs"})
    reader.note(key, Kind::kNoEffect, "Axolotl does not read it of preferences");
  // TRL trains on pairs without dropout, that of adapters included.
  reader.draft().put("model.type", Node::string("transformers"));
  reader.draft().put("model.dropout", Node::floating(0.0));
  if (reader.draft().find("adapters[lora].lora_dropout") == nullptr) return;
  reader.draft().put("adapters[lora].lora_dropout", Node::floating(0.0));
  reader.note("lora_dropout", Kind::kNoEffect, "pairs are trained without dropout");
}

/// Of keys whose table says all, and of what recipe_of_axolotl() does after the recipe is whole.
void leave(Reader& /*reader*/) {}

const std::map<std::string, Reader::Rule>& rules() {
  static const std::map<std::string, Reader::Rule> all = {{"model", take_model},
                                                          {"tokenizer", take_tokenizer},
                                                          {"adapted_layers", take_adapted_layers},
                                                          {"trained_parameters", take_trained_parameters},
                                                          {"data", take_axolotl_data},
                                                          {"lengths", take_lengths},
                                                          {"betas", take_betas},
                                                          {"schedule", take_schedule},
                                                          {"precision", take_precision},
                                                          {"best", take_best},
                                                          {"preferences", take_preferences},
                                                          {"plugins", leave},
                                                          {"sharding", leave}};
  return all;
}

}  // namespace

bool is_axolotl(const Node& config) {
  const Node* base = config.find("base_model");
  return (base != nullptr && base->is_string()) ||
         (config.find("gpu") != nullptr && config.find("gpu_count") != nullptr);
}

Node recipe_of_axolotl(const Node& config, std::vector<words::Row>& rows, core::Diagnostics& diagnostics) {
  Node written = config;
  written.erase(kScript);
  written.erase(kLauncher);
  Reader reader(words::table_of("axolotl"), written, rules(), diagnostics);
  reader.draft().put("recipe_version", Node::integer(1));
  reader.read();
  rows = reader.rows();
  Node recipe = reader.draft().ordered();
  refuse_empty_numbers(written, words::table_of("axolotl"), recipe, rows, diagnostics);
  keep_switches(written, words::table_of("axolotl"), recipe, rows);
  take_sharding(written, recipe, rows, diagnostics);
  if (const Node* launcher = config.find(kLauncher))
    take_launcher(*launcher, /*is_trainer=*/true, recipe, rows, diagnostics);
  return recipe;
}

}  // namespace runner::cli
