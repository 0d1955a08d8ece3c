#include "runner/cli/group/import/trainer_rules.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/registry/wording.h"

namespace runner::cli {
namespace {

using core::lower;
using core::Node;
using words::items_of;
using words::Reader;
using Kind = words::Outcome::Kind;

bool is_positive(const Node* value) { return value != nullptr && value->is_number() && value->as_double() > 0; }

/// Steps, or a part of the training below 1.
Node interval(const Node& number) {
  const bool is_part = number.is_number() && number.as_double() > 0 && number.as_double() < 1;
  return is_part ? Node::string(core::number_text(number.as_double()) + "dur", number.location()) : number;
}

/// A strategy as it is written; "" for none. In YAML 1.1 `no` is false.
std::string strategy_of(const Reader& reader, const char* key) {
  const Node* value = reader.config().find(key);
  if (value == nullptr || value->is_null()) return "";
  const std::string text = lower(value->scalar_text());
  return text == "false" ? "no" : text;
}

/// Sets an interval by its strategy; `usual`: steps where none are written.
void take_interval(Reader& reader, const char* strategy_key, const std::string& strategy, const char* steps_key,
                   const Node& usual, const char* path) {
  const Node* steps = reader.get(steps_key);
  if (strategy == "epoch") {
    reader.draft().put(path, Node::string("1ep"));
    reader.note(steps_key, Kind::kNoEffect, std::string(strategy_key) + " is epoch");
  } else if (strategy == "steps") {
    reader.draft().put(path, steps != nullptr ? interval(*steps) : usual);
  } else if (strategy == "no") {
    reader.note(steps_key, Kind::kNoEffect, std::string(strategy_key) + " is no");
  } else if (strategy != "best") {
    reader.refuse(*reader.config().find(strategy_key), strategy_key,
                  std::string(strategy_key) + " " + core::quote(strategy) + " is not one that the Trainer has",
                  "use no, steps or epoch");
  }
}

}  // namespace

const Node* number_of(Reader& reader, const char* key) {
  const Node* value = reader.get(key);
  if (value == nullptr || value->is_number()) return value;
  reader.refuse(*value, key, std::string(key) + " must be a number, got " + registry::described(*value),
                "write a number");
  return nullptr;
}

void take_betas(Reader& reader) {
  const Node* type = reader.draft().find("optimizer.type");
  const std::string name = type != nullptr && type->is_string() ? type->as_string() : "";
  const bool is_adam = name == "adam" || name == "adamw" || name == "adamw_8bit";
  const bool is_lion = name == "lion" || name == "lion_8bit";
  const Node *beta1 = reader.get("adam_beta1"), *beta2 = reader.get("adam_beta2"), *eps = reader.get("adam_epsilon");
  const bool is_muon = name == "muon";
  if (is_muon) {
    if (const Node* rate = reader.draft().find("optimizer.lr")) reader.draft().put("optimizer.adamw_lr", *rate);
  }
  const auto beta = [](const Node* written, double usual) {
    return written != nullptr ? *written : Node::floating(usual);
  };
  if ((is_adam || is_muon || is_lion) && (beta1 != nullptr || beta2 != nullptr)) {
    reader.draft().put(is_muon ? "optimizer.adamw_betas" : "optimizer.betas",
                       Node::sequence({beta(beta1, 0.9), beta(beta2, 0.999)}));
  } else {
    for (const char* key : {"adam_beta1", "adam_beta2"}) reader.note(key, Kind::kNoEffect, name + " does not read it");
  }
  if (eps != nullptr && (is_adam || is_muon)) {
    reader.draft().put(is_muon ? "optimizer.adamw_eps" : "optimizer.eps", *eps);
  } else {
    reader.note("adam_epsilon", Kind::kNoEffect, name + " does not read it");
  }
}

namespace {

/// LoRA+: B learns faster than A.
void take_rate_of_b(Reader& reader) {
  const Node* ratio = reader.get("loraplus_lr_ratio");
  const Node* rate = reader.draft().find("optimizer.lr");
  if (ratio == nullptr || !ratio->is_number() || rate == nullptr || !rate->is_number()) return;
  if (reader.draft().find("adapters") == nullptr)
    return reader.note("loraplus_lr_ratio", Kind::kNoEffect, "no adapter trains");
  Node group = Node::mapping();
  group.set("pattern", Node::string("*.lora_B.weight"));
  group.set("lr", Node::floating(rate->as_double() * ratio->as_double()));
  reader.draft().put("optimizer.param_groups", Node::sequence({std::move(group)}));
}

}  // namespace

void take_trainer_optimizer(Reader& reader, const TrainerMethod& /*method*/) {
  take_betas(reader);
  take_rate_of_b(reader);
  const Node* type = reader.draft().find("optimizer.type");
  const std::string name = type != nullptr && type->is_string() ? type->as_string() : "";
  if (name.ends_with("lomo")) return reader.note("weight_decay", Kind::kNoEffect, name + " does not read it");
  const Node* decay = number_of(reader, "weight_decay");
  reader.draft().put("optimizer.weight_decay", decay != nullptr ? *decay : Node::floating(0.0));
  if (is_positive(decay))  // what the Trainer exempts
    reader.draft().put("optimizer.no_decay", Node::sequence({Node::string("bias"), Node::string("norm")}));
}

namespace {

/// Of `warmup_stable_decay`, whose phases are steps there; roux's last one is a part of the training.
void take_decay(Reader& reader, const Node& at, const Node* more) {
  const auto number = [](const Node* value) {
    return value != nullptr && value->is_number() && value->as_double() > 0 ? value->as_double() : 0.0;
  };
  const double decay = number(more != nullptr && more->is_mapping() ? more->find("num_decay_steps") : nullptr);
  const double all = number(reader.get("max_steps"));
  if (decay == 0.0) {
    return reader.refuse(at, "lr_scheduler_type", "warmup_stable_decay has no num_decay_steps, which it needs",
                         "write lr_scheduler_kwargs: {num_decay_steps: N}");
  }
  if (all == 0.0) {
    return reader.refuse(at, "lr_scheduler_type",
                         "num_decay_steps is a number of steps, and how many the training has is not said",
                         "write max_steps, or lr_scheduler: {type: wsd, decay_ratio: 0.2} into the recipe");
  }
  reader.draft().put("lr_scheduler.decay_ratio", Node::floating(std::min(1.0, decay / all)));
  reader.note("lr_scheduler_kwargs.num_decay_steps", Kind::kTaken, "lr_scheduler.decay_ratio");
  // The tool's own shape, unless it is said.
  if (more->find("decay_type") == nullptr) reader.draft().put("lr_scheduler.decay", Node::string("cosine"));
}

/// Of `reduce_lr_on_plateau` the metric of the best model.
void take_monitor(Reader& reader) {
  const Node* metric = reader.get("metric_for_best_model");
  std::string name = metric != nullptr ? metric->scalar_text() : "loss";
  if (name.starts_with("eval_")) name.erase(0, 5);
  reader.draft().put("lr_scheduler.monitor", Node::string("val/" + name));
}

}  // namespace

void settle_warmup_of_inverse_sqrt(Reader& reader, const char* key) {
  const Node *type = reader.draft().find("lr_scheduler.type"),
             *ratio = reader.draft().find("lr_scheduler.warmup_ratio");
  const bool is_meant = type != nullptr && type->is_string() && type->as_string() == "inverse_sqrt";
  if (!is_meant || ratio == nullptr || !ratio->is_number()) return;
  const Node *schedule = reader.draft().find("lr_scheduler"), *most = reader.get("max_steps");
  Node steps = *schedule;
  steps.erase("warmup_ratio");
  const double all = most != nullptr && most->is_number() ? most->as_double() : 0.0;
  if (all > 0) {
    steps.set("warmup_steps", Node::integer(static_cast<std::int64_t>(std::ceil(ratio->as_double() * all))));
  } else {
    const Node* at = reader.config().find(key);
    reader.refuse(at != nullptr ? *at : reader.config(), key,
                  "inverse_sqrt warms up for a number of steps, and the training's length is not said in steps",
                  "write warmup_steps, or max_steps");
  }
  reader.draft().put("lr_scheduler", std::move(steps));
}

void take_trainer_schedule(Reader& reader, const TrainerMethod& method) {
  const Node* written = reader.get("lr_scheduler_type");
  const auto type = written != nullptr ? taken(reader, method, "lr_scheduler_type", *written) : std::nullopt;
  Node schedule = Node::mapping();
  reader.draft().put("lr_scheduler.type", type.value_or(Node::string("linear")));
  const Node *steps = number_of(reader, "warmup_steps"), *ratio = number_of(reader, "warmup_ratio");
  // `constant` has no warmup, whatever is said beside it; steps go before a ratio.
  if (written != nullptr && lower(written->scalar_text()) == "constant") {
    for (const char* key : {"warmup_steps", "warmup_ratio"})
      reader.note(key, Kind::kNoEffect, "the schedule constant has no warmup");
  } else if (is_positive(steps)) {
    // Below 1 it is a part of the training, in version 5.
    reader.draft().put(steps->as_double() < 1 ? "lr_scheduler.warmup_ratio" : "lr_scheduler.warmup_steps", *steps);
    reader.note("warmup_ratio", Kind::kNoEffect, "warmup_steps goes before it");
  } else if (is_positive(ratio)) {
    reader.draft().put("lr_scheduler.warmup_ratio", *ratio);
  }
  const Node* more = reader.get("lr_scheduler_kwargs");
  const std::string kind = written != nullptr ? lower(written->scalar_text()) : "";
  if (kind == "warmup_stable_decay") take_decay(reader, *written, more);
  if (kind == "reduce_lr_on_plateau") take_monitor(reader);
  settle_warmup_of_inverse_sqrt(reader, "lr_scheduler_type");
  if (more == nullptr) return;
  const words::Word* word = words::find(words::table_of(words_of(method)).words, "lr_scheduler_kwargs");
  if (more->is_mapping()) return reader.read_block(*more, word->inner, "lr_scheduler_kwargs.", reader.draft());
  reader.refuse(*more, "lr_scheduler_kwargs", "lr_scheduler_kwargs must be a mapping",
                "write lr_scheduler_kwargs: {min_lr_rate: 0.1}, or remove it");
}

void take_trainer_lengths(Reader& reader) {
  const Node *steps = number_of(reader, "max_steps"), *epochs = reader.get("num_train_epochs");
  if (is_positive(steps)) {
    reader.note("num_train_epochs", Kind::kNoEffect, "max_steps goes before it");
    return reader.draft().put("training.max_steps", *steps);
  }
  reader.note("max_steps", Kind::kNoEffect, "below 1 it leaves the length to num_train_epochs");
  reader.draft().put("training.max_epochs", epochs != nullptr ? *epochs : Node::integer(3));
}

void take_trainer_precision(Reader& reader, const TrainerMethod& method) {
  const auto is = [&](const char* key) { return reader.get(key) != nullptr; };
  const bool is_usual = method.is_trl() && !is("fp16") && !says(reader.config(), "bf16", false);  // TRL's, unless said
  const char* mode = is("pure_bf16")          ? "bf16-true"
                     : is("bf16") || is_usual ? "bf16-mixed"
                     : is("fp16")             ? "16-mixed"
                     : method.is_trl()        ? "32-true"
                                              : nullptr;
  for (const char* key : {"dtype", "torch_dtype"}) {
    const Node* dtype = reader.get(key);
    if (dtype == nullptr) continue;
    const std::string type = lower(dtype->scalar_text());
    if (type == "bfloat16") {
      mode = "bf16-true";
      reader.note(key, Kind::kTaken, "precision.mode: bf16-true");
    } else {
      const bool is_exact = type == "float32";
      reader.note(key, is_exact ? Kind::kNoEffect : Kind::kChanged,
                  is_exact ? "weights are kept in 32 bits" : "precision.mode; weights are kept in 32 bits");
    }
  }
  for (const char* key : {"pure_bf16", "bf16", "fp16"}) {
    if (is(key)) reader.note(key, Kind::kTaken, std::string("precision.mode: ") + mode);
  }
  const Node* written = nullptr;  // a launcher gives way to what was written
  for (const char* key : {"dtype", "torch_dtype", "fp16", "bf16", "pure_bf16"}) {
    if (reader.config().find(key) != nullptr) written = reader.config().find(key);
  }
  if (mode != nullptr)
    reader.draft().put("precision.mode",
                       Node::string(mode, written != nullptr ? written->location() : core::Location{}));
  if (method.is_trl() && says(reader.config(), "bf16", false) && mode != nullptr)
    reader.note("bf16", Kind::kTaken, std::string("precision.mode: ") + mode);
  // TRL computes activations again unless it is told not to.
  const bool keeps = says(reader.config(), "gradient_checkpointing", false) ||
                     says(reader.config(), "activation_checkpointing", false);
  if (method.is_trl() && !keeps) reader.draft().put("activation_checkpointing.mode", Node::string("full"));
  for (const char* key : {"gradient_checkpointing", "activation_checkpointing"}) {
    if (method.is_trl() && says(reader.config(), key, false))
      reader.note(key, Kind::kTaken, "activation_checkpointing: none");
  }
}

void take_trainer_intervals(Reader& reader, const TrainerMethod& method) {
  const Node* steps = reader.get("logging_steps");
  const Node logging = steps != nullptr ? *steps : Node::integer(method.is_trl() ? 10 : 500);
  const std::string log = strategy_of(reader, "logging_strategy");
  if (log.empty() || log == "steps") {
    if (logging.is_number() && logging.as_double() > 0 && logging.as_double() < 1) {
      reader.refuse(logging, "logging_steps", "logging_steps is " + logging.scalar_text() + ", a part of the training",
                    "write a number of steps");
    } else {
      reader.draft().put("logging_steps", logging);
    }
  } else {
    reader.note("logging_strategy", Kind::kChanged, "logging_steps; roux logs by steps, and keeps each evaluation");
    reader.note("logging_steps", Kind::kNoEffect, "logging_strategy is " + log);
  }
  const bool has_old = reader.get("eval_strategy") == nullptr && reader.config().find("evaluation_strategy") != nullptr;
  const char* key = has_old ? "evaluation_strategy" : "eval_strategy";
  const std::string eval = strategy_of(reader, key);
  take_interval(reader, key, eval.empty() ? "no" : eval, "eval_steps", logging, "eval.eval_steps");
  if (const Node* most = reader.get("max_eval_samples")) {  // one batch that counts, whatever a pass takes
    reader.draft().put("eval.max_batches", Node::integer(1));
    reader.draft().put("eval.counted_batch_size", *most);
  }
  const std::string save = strategy_of(reader, "save_strategy");
  if (save == "best") reader.draft().put("checkpoint.save_best", Node::boolean(true));
  take_interval(reader, "save_strategy", save.empty() ? "steps" : save, "save_steps", Node::integer(500),
                "checkpoint.save_steps");
}

void take_trainer_best(Reader& reader) {
  const Node *load = reader.get("load_best_model_at_end"), *metric = reader.get("metric_for_best_model");
  const Node* greater = reader.config().find("greater_is_better");
  const bool is_best = load != nullptr || strategy_of(reader, "save_strategy") == "best";
  if (!is_best && metric == nullptr) return reader.note("greater_is_better", Kind::kNoEffect, "no best model is kept");
  std::string name = metric != nullptr ? metric->scalar_text() : "loss";
  if (name.starts_with("eval_")) name.erase(0, 5);
  if (load != nullptr) reader.draft().put("checkpoint.save_best", Node::boolean(true));
  reader.draft().put("checkpoint.monitor",
                     Node::string("val/" + name, (metric != nullptr ? *metric : *load).location()));
  if (name == "accuracy" || name == "perplexity")
    reader.draft().put("eval.metrics", Node::sequence({Node::string(name)}));
  if (greater == nullptr || !greater->is_bool() || metric == nullptr) return;
  const char* mode = greater->as_bool() ? "max" : "min";
  reader.draft().put("checkpoint.mode", Node::string(mode));
  reader.note("greater_is_better", Kind::kTaken, std::string("checkpoint.mode: ") + mode);
}

void take_trainer_trackers(Reader& reader, const TrainerMethod& method) {
  const Node* report = reader.get("report_to");
  if (report == nullptr) return;
  Node trackers = Node::sequence();
  for (const Node& name : items_of(*report)) {
    if (auto tracker = taken(reader, method, "report_to", name)) trackers.items().push_back(std::move(*tracker));
  }
  if (!trackers.items().empty()) reader.draft().put("trackers", std::move(trackers));
}

void take_trainer_run_name(Reader& reader) {
  const Node* written = reader.get("run_name");
  if (written == nullptr) return;
  std::string name = written->scalar_text().substr(0, 100);
  for (char& c : name) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    if (!kept) c = '-';
  }
  reader.draft().put("run_name", Node::string(name));
}

}  // namespace runner::cli
