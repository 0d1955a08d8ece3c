#include "runner/resolve/consistency.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "runner/core/language/name_map.h"
#include "runner/core/metric_direction.h"
#include "runner/core/suggest.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/registry/wording.h"
#include "runner/resolve/batch_algebra.h"
#include "runner/resolve/machines.h"
#include "runner/resolve/settled_tree.h"

namespace runner::resolve {
namespace {

using core::Node;
using registry::enumerated;

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> evaluated_sets(SettledTree& tree) {
  std::vector<std::string> names;
  const Node* data = tree.value("data");
  if (data == nullptr) return names;
  for (const Node::Entry& entry : data->entries()) {
    if (entry.key != "train") names.push_back(entry.key);
  }
  return names;
}

/// `loss` and the types of eval.metrics; nothing when the list was refused.
std::optional<std::vector<std::string>> metric_names(SettledTree& tree) {
  const Node* metrics = tree.value("eval.metrics");
  if (metrics == nullptr || !metrics->is_sequence()) return std::nullopt;
  std::vector<std::string> names = {"loss"};
  for (const Node& metric : metrics->items()) {
    const Node* type = metric.find("type");
    if (type == nullptr || !type->is_string()) return std::nullopt;
    names.push_back(type->as_string());
  }
  return names;
}

/// Ranks are processes.
void sweep_isolation(SettledTree& tree) {
  const std::int64_t count = tree.integer("launch.num_processes").value_or(1);
  if (tree.text("sweep.isolation") != "none" || count == 1) return;
  tree.error("sweep.isolation", "isolation is none, but launch.num_processes is " + std::to_string(count),
             "use isolation: fork, or one process");
}

/// The keys that name a metric to monitor: checkpoint.monitor, a plateau's, and those of callbacks.
std::vector<std::string> monitor_paths(SettledTree& tree) {
  std::vector<std::string> paths;
  for (const char* path : {"checkpoint.monitor", "lr_scheduler.monitor"}) {
    if (tree.text(path)) paths.emplace_back(path);
  }
  // Of several objectives the first stands in for it.
  if (tree.text("sweep.metric.name") && !tree.text("sweep.objectives[0].name")) paths.emplace_back("sweep.metric.name");
  if (const Node* objectives = tree.value("sweep.objectives")) {
    for (std::size_t i = 0; i < objectives->items().size(); ++i) {
      const std::string path = "sweep.objectives[" + std::to_string(i) + "].name";
      if (tree.text(path)) paths.push_back(path);
    }
  }
  if (const Node* callbacks = tree.value("callbacks")) {
    for (std::size_t i = 0; i < callbacks->items().size(); ++i) {
      const std::string path = "callbacks[" + std::to_string(i) + "].monitor";
      if (tree.text(path)) paths.push_back(path);
    }
  }
  return paths;
}

/// Whether higher values of a metric are better; lower ones if its name does not tell.
bool is_maximized(const std::string& metric) { return core::metric_direction(metric) == core::Better::kHigher; }

/// The directions that the author left to the metrics. A sweep's single metric is settled below.
void metric_directions(SettledTree& tree) {
  const auto settle = [&tree](const std::string& block, const char* metric, const char* direction, const char* lower,
                              const char* higher) {
    const std::string name = tree.text(block + metric).value_or("");
    const std::string why = name.empty() ? "default" : "the direction of " + name;
    tree.fill(block + direction, Node::string(is_maximized(name) ? higher : lower), why);
  };
  const auto count = [&tree](const char* path) {
    const Node* list = tree.value(path);
    return list == nullptr ? 0 : list->items().size();
  };
  settle("checkpoint.", "monitor", "mode", "min", "max");
  if (tree.text("lr_scheduler.monitor")) settle("lr_scheduler.", "monitor", "mode", "min", "max");
  for (std::size_t i = 0; i < count("callbacks"); ++i) {
    const std::string block = "callbacks[" + std::to_string(i) + "].";
    if (tree.text(block + "type") == "early_stopping") settle(block, "monitor", "mode", "min", "max");
  }
  for (std::size_t i = 0; i < count("sweep.objectives"); ++i) {
    settle("sweep.objectives[" + std::to_string(i) + "].", "name", "goal", "minimize", "maximize");
  }
}

/// What a sweep compares, where its author left that open.
void sweep_metric(SettledTree& tree) {
  if (tree.value("sweep") == nullptr || tree.was_refused("sweep.metric")) return;
  if (const auto first = tree.text("sweep.objectives[0].name")) {
    if (tree.text("sweep.metric.name").value_or(*first) != *first) {
      tree.error("sweep.metric", "a sweep has either one metric or several objectives", "keep one of the two");
    }
    tree.fill("sweep.metric.name", Node::string(*first), "the first of sweep.objectives");
    if (const auto goal = tree.text("sweep.objectives[0].goal")) {
      tree.fill("sweep.metric.goal", Node::string(*goal), "the first of sweep.objectives");
    }
    return;
  }
  const std::optional<std::string> monitor = tree.text("checkpoint.monitor");
  const std::vector<std::string> sets = evaluated_sets(tree);
  if (monitor) {
    tree.fill("sweep.metric.name", Node::string(*monitor), "checkpoint.monitor");
  } else if (!sets.empty()) {
    tree.fill("sweep.metric.name", Node::string(sets[0] + "/loss"), "the first data set that is evaluated");
  }
  const std::string metric = tree.text("sweep.metric.name").value_or("");
  const bool larger = monitor == metric ? tree.text("checkpoint.mode") == "max" : is_maximized(metric);
  tree.fill("sweep.metric.goal", Node::string(larger ? "maximize" : "minimize"),
            monitor == metric ? "checkpoint.mode" : "the direction of " + metric);
  if (tree.text("sweep.metric.name") || tree.value("data") == nullptr) return;
  tree.error("sweep", "a sweep needs an evaluation, but train is the only data set",
             "add a data set, such as data.val");
}

void train_set(SettledTree& tree) {
  const Node* data = tree.value("data");
  if (data == nullptr || !data->is_mapping() || data->find("train") != nullptr) return;
  std::vector<std::string> names;
  for (const Node::Entry& entry : data->entries()) names.push_back(entry.key);
  if (names.empty())
    return tree.error("data", "data needs a data set called train", "add train: {type: text, path: ...}");
  std::string near = core::closest("train", names);
  // People call it by other words, none of which is near.
  for (const char* word : {"training", "train_set", "train_data", "train_dataset"}) {
    if (near.empty() && std::find(names.begin(), names.end(), word) != names.end()) near = word;
  }
  tree.error("data", "data needs a data set called train, it has " + enumerated(names, "and", names.size()),
             near.empty() ? "train is the training set; all others are evaluated" : "rename " + near + " to train");
}

/// `:90%`, `10%:20%`, or all for nothing; nothing for what is no split.
std::optional<std::pair<double, double>> split_of(const SettledTree& tree, const std::string& set) {
  if (tree.was_refused(set + ".split")) return std::nullopt;
  const std::string text = tree.text(set + ".split").value_or(":");
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto percent = [](std::string_view part, double otherwise) {
    double number = otherwise;
    std::from_chars(part.data(), part.data() + part.size(), number);
    return number;
  };
  const std::string_view whole = text;
  return std::pair(percent(whole.substr(0, colon), 0.0), percent(whole.substr(colon + 1), 100.0));
}

/// Samples that are trained on say little about others.
void held_out(SettledTree& tree) {
  const Node* train = tree.value("data.train.path");
  if (train == nullptr) return;
  const auto same = [&tree](const std::string& set, const char* key) {
    const Node *first = tree.value("data.train." + std::string(key)), *second = tree.value(set + "." + key);
    return first == nullptr || second == nullptr ? first == second : first->same_value(*second);
  };
  for (const std::string& name : evaluated_sets(tree)) {
    const std::string set = "data." + name;
    if (!same(set, "path") || !same(set, "exclude") || !same(set, "type") || !same(set, "split_by")) continue;
    const auto trained = split_of(tree, "data.train"), evaluated = split_of(tree, set);
    if (!trained || !evaluated) continue;
    if (std::max(trained->first, evaluated->first) >= std::min(trained->second, evaluated->second)) continue;
    tree.warning(set, set + " evaluates samples of data.train: both read the same part of the same files",
                 "write split: \":90%\" in train and split: \"90%:\" in " + name);
  }
}

void data_set_names(SettledTree& tree) {
  const Node* data = tree.value("data");
  if (data == nullptr) return;
  for (const Node::Entry& entry : data->entries()) {
    const bool fits = !entry.key.empty() && std::all_of(entry.key.begin(), entry.key.end(), [](unsigned char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    if (!fits)
      tree.error_at(entry.key_location,
                    "the name of a data set must be letters, digits, '_' and '-', got " + core::in_quotes(entry.key),
                    "metrics are called NAME/loss after it");
  }
}

void one_limit(SettledTree& tree) {
  for (const char* limit : {"max_steps", "max_epochs", "max_tokens", "max_time"}) {
    if (tree.given(std::string("training.") + limit)) return;
  }
  if (tree.was_refused("training")) return;
  tree.error("training", "training needs a limit: max_steps, max_epochs, max_tokens or max_time",
             "write training: {max_steps: 1000, ...}; the first limit reached ends the run");
}

/// Accelerate steps the schedule once a process, takes the mean of the micro-batches' means, and trains on padding.
void compat(SettledTree& tree) {
  if (tree.text("compat") != "accelerate") return;
  tree.fill("lr_scheduler.step_with_optimizer", Node::boolean(true), "compat accelerate");
  tree.fill("lr_scheduler.step_per_process", Node::boolean(true), "compat accelerate");
  tree.fill("accumulation.mean", Node::string("micro_batches"), "compat accelerate");
  tree.fill("loader.count_repeated_samples", Node::boolean(true), "compat accelerate");
  tree.fill("ddp.broadcast_buffers", Node::boolean(true), "compat accelerate");
}

/// Epochs and tokens become steps only when the data is known: `plan` settles those.
void total_steps(SettledTree& tree) {
  const Node* scheduler = tree.value("lr_scheduler");
  if (scheduler == nullptr || scheduler->find("total_steps") == nullptr || tree.given("lr_scheduler.total_steps"))
    return;
  if (tree.given("training.max_epochs") || tree.given("training.max_tokens")) return;
  if (const std::optional<std::int64_t> steps = tree.integer("training.max_steps")) {
    const bool adjusts = tree.is_true("accumulation.adjust_scheduler");
    const std::int64_t unit = adjusts ? 1 : tree.integer("training.gradient_accumulation_steps").value_or(1);
    std::int64_t total = 0;
    if (__builtin_mul_overflow(*steps, unit, &total)) total = *steps;
    tree.fill("lr_scheduler.total_steps", Node::integer(total), "computed from training.max_steps");
    return;
  }
  if (tree.given("training.max_steps") || !tree.given("training.max_time")) return;
  // A constant schedule needs its length only as what warmup_ratio is a share of.
  const Node* open = scheduler->find("total_steps");
  const bool needed =
      std::find(open->history().begin(), open->history().end(), "computed from training") != open->history().end();
  if (!needed && !tree.given("lr_scheduler.warmup_ratio")) return;
  tree.error("lr_scheduler",
             "lr_scheduler (" + tree.text("lr_scheduler.type").value_or("") +
                 ") needs total_steps: training has max_time only, which does not determine the number of steps",
             "write lr_scheduler.total_steps, or training.max_steps in addition to max_time");
}

/// Steps after the end of a schedule that decays to 0 train nothing.
void schedule_end(SettledTree& tree) {
  const std::optional<std::int64_t> total = tree.integer("lr_scheduler.total_steps");
  const std::optional<std::int64_t> steps = tree.integer("training.max_steps");
  if (!total || !steps || !tree.written("lr_scheduler.total_steps")) return;
  static const std::vector<std::string> kDecaying = {"cosine", "linear", "polynomial", "wsd"};
  const std::string type = tree.text("lr_scheduler.type").value_or("");
  const auto is = [&tree](const char* path, double value) {
    const Node* node = tree.value(path);
    return node == nullptr || !node->is_number() || node->as_double() == value;
  };
  const bool turns = tree.value("lr_scheduler.hold_floor") != nullptr && !tree.is_true("lr_scheduler.hold_floor");
  if (!contains(kDecaying, type) || turns || tree.is_true("lr_scheduler.step_per_process")) return;
  if (!is("lr_scheduler.min_lr_ratio", 0.0) || !is("lr_scheduler.num_cycles", 0.5)) return;
  const bool adjusts = tree.is_true("accumulation.adjust_scheduler");
  const std::int64_t unit = adjusts ? 1 : tree.integer("training.gradient_accumulation_steps").value_or(1);
  if (*steps <= *total / unit) return;
  tree.warning("lr_scheduler.total_steps",
               "the learning rate is 0 from step " + std::to_string(*total / unit) + " of " + std::to_string(*steps) +
                   ": lr_scheduler.total_steps ends the schedule there",
               "remove total_steps, or set lr_scheduler.min_lr_ratio");
}

/// The metric that a word names or most likely means, one that is measured first; "" for none.
std::string meant_metric(const SettledTree& tree, const std::string& word, const std::vector<std::string>& measured) {
  const std::string near = core::closest(word, measured);
  return near.empty() ? tree.meant_metric(word) : near;
}

/// `write val/loss` for `loss`, `val_loss` and `eval_loss`.
std::string monitor_hint(const SettledTree& tree, const std::string& monitor, const std::vector<std::string>& sets,
                         const std::vector<std::string>& measured) {
  std::vector<std::string> words = sets;
  for (const char* word : {"eval", "val", "valid", "validation", "dev", "test"}) words.emplace_back(word);
  std::string set = sets[0], metric = monitor;
  for (const std::string& word : words) {
    if (!monitor.starts_with(word) || monitor.find_first_of("_-.:", word.size()) != word.size()) continue;
    if (contains(sets, word)) set = word;
    metric = monitor.substr(word.size() + 1);
    break;
  }
  const std::string meant = meant_metric(tree, metric, measured);
  if (meant.empty()) return "write " + set + "/loss";
  return "write " + set + "/" + meant +
         (contains(measured, meant) ? "" : ", and add it to eval.metrics: [" + meant + "]");
}

/// How to name one of the metrics of `set` in place of `metric`.
std::string metric_hint(const SettledTree& tree, const std::string& set, const std::string& metric,
                        const std::vector<std::string>& measured) {
  const std::string meant = meant_metric(tree, metric, measured);
  if (contains(measured, meant)) return "did you mean " + set + "/" + meant + "?";
  if (meant == metric) return "add it to eval.metrics: [" + metric + "]";
  if (!meant.empty()) return "write " + set + "/" + meant + ", and add it to eval.metrics: [" + meant + "]";
  std::vector<std::string> names;
  for (const std::string& name : measured) names.push_back(set + "/" + name);
  return "it can be " + enumerated(names, "or", names.size()) + "; `roux list metric` shows what eval.metrics takes";
}

void monitored_metric(SettledTree& tree) {
  const std::vector<std::string> sets = evaluated_sets(tree);
  const std::optional<std::vector<std::string>> metrics = metric_names(tree);
  const std::vector<std::string> loss_only = {"loss"};
  if (tree.value("data") == nullptr || tree.was_refused("data")) return;
  for (const std::string& path : monitor_paths(tree)) {
    const std::string monitor = *tree.text(path);
    const std::size_t slash = monitor.find('/');
    const std::string example = (sets.empty() ? std::string("val") : sets[0]) + "/loss";
    if (slash == std::string::npos) {
      tree.error(path,
                 path + " must be a data set and a metric, as in " + example + ", got " + core::in_quotes(monitor),
                 sets.empty() ? "" : monitor_hint(tree, monitor, sets, metrics.value_or(loss_only)));
      continue;
    }
    const std::string set = monitor.substr(0, slash);
    const std::string metric = monitor.substr(slash + 1);
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) {
      if (set == "train") {
        tree.error(path, path + " is " + monitor + ", but train is not evaluated",
                   sets.empty() ? "add a data set to evaluate, such as data.val" : "write " + sets[0] + "/" + metric);
        continue;
      }
      const std::string near = core::closest(set, sets);
      tree.error(path, path + " is " + monitor + ", but there is no data set called " + core::in_quotes(set),
                 sets.empty()   ? "add data." + set
                 : near.empty() ? "there is " + enumerated(sets, "and", sets.size())
                                : "did you mean " + near + "/" + metric + "?");
      continue;
    }
    if (!metrics || std::find(metrics->begin(), metrics->end(), metric) != metrics->end()) continue;
    tree.error(path,
               path + " is " + monitor + ", but only " + enumerated(*metrics, "and", metrics->size()) +
                   (metrics->size() > 1 ? " are" : " is") + " measured",
               metric_hint(tree, set, metric, *metrics));
  }
}

void monitor_needs_evaluation(SettledTree& tree) {
  if (tree.given("eval.eval_steps") || tree.was_refused("eval")) return;
  for (const std::string& path : monitor_paths(tree)) {
    if (path == "checkpoint.monitor" && !tree.is_true("checkpoint.save_best")) continue;
    if (path.starts_with("sweep.") && !tree.text("sweep.pruner.type")) continue;  // the evaluation at the end will do
    tree.error(path, path + " is " + *tree.text(path) + ", but nothing is evaluated before the end",
               "set the interval with eval.eval_steps");
  }
}

void something_to_evaluate(SettledTree& tree) {
  const Node* data = tree.value("data");
  if (!tree.given("eval.eval_steps") || data == nullptr || !evaluated_sets(tree).empty()) return;
  tree.warning("eval.eval_steps",
               "eval.eval_steps is given, but train is the only data set: there is nothing to evaluate",
               "add a data set, such as data.val");
}

void metric_once(SettledTree& tree) {
  const std::optional<std::vector<std::string>> names = metric_names(tree);
  if (!names) return;
  for (std::size_t i = 1; i < names->size(); ++i) {
    if (std::find(names->begin(), names->begin() + static_cast<std::ptrdiff_t>(i), (*names)[i]) ==
        names->begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    tree.error("eval.metrics[" + std::to_string(i - 1) + "]", "eval.metrics has " + (*names)[i] + " twice",
               "keep one of them");
  }
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

void micro_batch_can_shrink(SettledTree& tree) {
  constexpr std::string_view kMinus = "minus:";
  const std::optional<std::string> policy = tree.text("training.auto_micro_batch");
  const std::optional<std::int64_t> size = tree.integer("training.micro_batch_size");
  if (!policy || !size || !policy->starts_with(kMinus)) return;
  const std::int64_t by = std::stoll(policy->substr(kMinus.size()));
  if (by < *size) return;
  tree.error("training.auto_micro_batch",
             "auto_micro_batch is " + *policy + ", but micro_batch_size is " + std::to_string(*size) +
                 ": nothing would be left",
             "auto_micro_batch: halve fits every size");
}

void somewhere_to_roll_back_to(SettledTree& tree) {
  if (tree.given("checkpoint.save_steps") || tree.is_true("checkpoint.save_best") || tree.was_refused("checkpoint")) {
    return;
  }
  for (const char* path : {"faults.on_nan", "faults.on_spike"}) {
    if (tree.text(path) != "rollback") continue;
    tree.error(path, std::string(path) + " is rollback, but no checkpoint is saved during training",
               "set the interval with checkpoint.save_steps");
  }
}

/// Keys that would do nothing.
void init_from_source(SettledTree& tree) {
  if (tree.text("init_from.path") || tree.was_refused("init_from.path")) return;
  for (const char* key : {"rename", "include", "exclude", "strict"}) {
    const std::string path = std::string("init_from.") + key;
    const Node* value = tree.value(path);
    if (!tree.written(path) || value == nullptr || value->is_null()) continue;
    // A resolved recipe writes the defaults down, and has to be taken again.
    if ((value->is_mapping() && value->entries().empty()) || (value->is_sequence() && value->items().empty())) continue;
    if (value->is_bool() && value->as_bool()) continue;
    return tree.error(path, path + " is set, but init_from.path is not",
                      "add path: a checkpoint folder, a safetensors file, or RUN:best");
  }
}

void init_from_rename(SettledTree& tree) {
  const Node* rules = tree.value("init_from.rename");
  if (rules == nullptr || !rules->is_mapping()) return;
  for (const Node::Entry& rule : rules->entries()) {
    if (!rule.value.is_string()) continue;
    const core::Result<void> fits = core::NameMap::check(rule.key, rule.value.as_string());
    if (!fits) tree.error_at(rule.key_location, "init_from.rename: " + fits.failure().message, fits.failure().hint);
  }
}

/// Keys of `precision` that another mode is for.
void precision_keys(SettledTree& tree) {
  const std::optional<std::string> mode = tree.text("precision.mode");
  if (!mode || tree.was_refused("precision")) return;
  const Node* overrides = tree.value("precision.overrides");
  const auto is_used = [&](std::string_view wanted) {
    if (std::string_view(*mode).ends_with(wanted)) return true;
    if (overrides == nullptr) return false;
    const auto& entries = overrides->entries();
    return std::any_of(entries.begin(), entries.end(), [&](const Node::Entry& entry) {
      return entry.value.is_string() && std::string_view(entry.value.as_string()).ends_with(wanted);
    });
  };
  // A resolved recipe writes the schema's defaults down, and has to be taken again (tests/cli/recipe/resolve.cli does).
  const auto differs = [&](const std::string& path, double value) {
    const Node* node = tree.value(path);
    if (!tree.written(path) || node == nullptr) return false;
    return (node->is_bool() ? (node->as_bool() ? 1.0 : 0.0) : node->as_double()) != value;
  };
  const auto unused = [&](const std::string& path, const std::string& what, const std::string& hint) {
    tree.warning(path, path + " has no effect: " + what + ", but the mode is " + *mode, hint);
  };
  if (*mode != "16-mixed") {
    static constexpr std::pair<const char*, double> kDefaults[] = {{"enabled", 1},
                                                                   {"init_scale", 65536},
                                                                   {"growth_factor", 2},
                                                                   {"backoff_factor", 0.5},
                                                                   {"growth_interval", 2000}};
    for (const auto& [key, value] : kDefaults) {
      const std::string path = std::string("precision.scaler.") + key;
      if (!differs(path, value)) continue;
      unused(path, "only 16-mixed scales the loss",
             *mode == "32-true" ? "write precision.mode: 16-mixed, or leave it out"
                                : "bfloat16 has the range of float32 and needs no scale: remove it");
    }
  }
  if (!is_used("-mixed")) {
    for (const char* key : {"enabled", "cache_enabled"}) {
      const std::string path = std::string("precision.autocast.") + key;
      if (differs(path, 1.0)) unused(path, "only the mixed modes use autocast", "leave it out");
    }
  }
  if (differs("precision.stochastic_rounding", 1.0) && !is_used("bf16-true")) {
    unused("precision.stochastic_rounding", "only bf16-true rounds its weights", "leave it out");
  }
}

/// Keys for whoever looks after several processes, and for several readers.
void one_process(SettledTree& tree) {
  if (tree.integer("launch.num_processes").value_or(1) > 1) return;
  for (const char* path : {"loader.split_batches", "loader.dispatch_batches", "loader.count_repeated_samples",
                           "ddp.broadcast_buffers", "checkpoint.save_on_each_node"}) {
    if (!tree.is_true(path) || !tree.written(path)) continue;
    tree.warning(path, std::string(path) + " has no effect: there is one process", "leave it out");
  }
  if (tree.integer("launch.max_restarts").value_or(0) > 0) {
    tree.warning("launch.max_restarts", "launch.max_restarts has no effect: one process has no supervisor",
                 "run the same command again to resume, or train with several processes");
  }
  const auto unused = [&](const char* path) {
    tree.warning(path, std::string(path) + " has no effect: one process has no supervisor",
                 "remove it, or train with several processes");
  };
  if (tree.integer("launch.tee").value_or(0) > 0) unused("launch.tee");
  if (tree.given("launch.log_dir")) unused("launch.log_dir");
  for (const char* path : {"launch.enable_cpu_affinity", "launch.debug"}) {
    if (tree.is_true(path)) unused(path);
  }
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

/// Settings of the gradient exchange with a single process.
void exchanges(SettledTree& tree) {
  if (tree.integer("launch.num_processes").value_or(1) > 1) return;
  const auto unused = [&](const std::string& path) {
    tree.warning(path, path + " has no effect: one process exchanges no gradients", "leave it out");
  };
  if (tree.is_true("accumulation.sync_each_batch")) unused("accumulation.sync_each_batch");
  if (tree.text("ddp.comm_hook").value_or("no") != "no") unused("ddp.comm_hook");
  if (tree.given("local_sgd.local_sgd_steps")) unused("local_sgd.local_sgd_steps");
}

/// What needs gradients that all processes have in common, or weights that are the same after each step.
void local_sgd(SettledTree& tree) {
  if (!tree.given("local_sgd.local_sgd_steps") || tree.integer("launch.num_processes").value_or(1) == 1) return;
  const auto refuse = [&](const std::string& path, const std::string& why) {
    tree.error(path, path + " cannot be combined with local_sgd: " + why, "leave one of the two out");
  };
  for (const char* path : {"accumulation.sync_each_batch", "ddp.static_graph", "ddp.check_reduction"}) {
    if (tree.is_true(path)) refuse(path, "no gradients are exchanged");
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

/// Words that stand for other runs and checkpoints wherever a run is named.
void run_name_words(SettledTree& tree) {
  const std::string name = tree.text("run_name").value_or("");
  if (name != "last" && name != "best") return;
  tree.error("run_name", "run_name is " + name + ", which means another run or checkpoint in every command",
             "write " + name + "-1 or the like");
}

/// Its average would be one of averages.
void one_average(SettledTree& tree) {
  const std::string optimizer = tree.text("optimizer.type").value_or("");
  if (!tree.text("weight_averaging.type") || !optimizer.ends_with("_schedule_free")) return;
  tree.error("weight_averaging",
             "weight_averaging averages the weights, and so does optimizer " + optimizer + " itself",
             "remove weight_averaging, or use adamw or sgd");
}

/// Where a tracker writes files, as the recipe has it. Two of a kind that write to one place would undo each other's
/// work; those that are not named here tell each other apart.
void tracker_places(SettledTree& tree) {
  static const std::map<std::string, const char*> kPlaces = {
      {"csv", "path"},    {"jsonl", "path"},  {"tensorboard", "logging_dir"}, {"comet_ml", "offline_directory"},
      {"clearml", "dir"}, {"dvclive", "dir"},
  };
  const Node* trackers = tree.value("trackers");
  if (trackers == nullptr) return;
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < trackers->items().size(); ++i) {
    const std::string path = "trackers[" + std::to_string(i) + "]";
    const auto type = tree.text(path + ".type");
    const auto key = type ? kPlaces.find(*type) : kPlaces.end();
    if (key == kPlaces.end()) continue;
    const std::string where = path + "." + key->second;
    const auto place = tree.text(where);
    if (!place) continue;
    const auto [at, is_new] = first.emplace(std::filesystem::path(*place).lexically_normal().string(), i);
    if (is_new) continue;
    tree.error(
        where,
        path + " writes to " + core::in_quotes(*place) + ", and so does trackers[" + std::to_string(at->second) + "]",
        "give each its own path");
  }
}

/// A tracker's place in a run is kept by its name.
void tracker_names(SettledTree& tree) {
  const Node* trackers = tree.value("trackers");
  if (trackers == nullptr) return;
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < trackers->items().size(); ++i) {
    const std::string path = "trackers[" + std::to_string(i) + "]";
    const auto type = tree.text(path + ".type"), given = tree.text(path + ".name");
    if (!type) continue;
    const auto [at, is_new] = first.emplace(given.value_or(*type), i);
    if (is_new) continue;
    tree.error(
        given ? path + ".name" : path,
        path + " is called " + core::in_quotes(at->first) + ", and so is trackers[" + std::to_string(at->second) + "]",
        "give each its own `name`");
  }
}

/// Any setting of a profile enables it.
void profiler_activities(SettledTree& tree) {
  const auto record = [&tree](const std::string& path) {
    tree.fill("profiler.activities", Node::sequence({Node::string("cpu")}), "settled by " + path);
  };
  for (const char* key : {"record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"}) {
    const std::string path = std::string("profiler.") + key;
    if (tree.is_true(path)) record(path);
  }
  if (tree.text("profiler.output_trace_dir")) record("profiler.output_trace_dir");
}

struct Rule {
  const char* name;
  void (*apply)(SettledTree&);
};

/// In this order: what settles a value comes before what reads it.
constexpr Rule kRules[] = {
    {"run_name_words", run_name_words},
    {"train_set", train_set},
    {"data_set_names", data_set_names},
    {"held_out", held_out},
    {"one_limit", one_limit},
    {"batch_algebra", batch_algebra},
    {"compat", compat},
    {"total_steps", total_steps},
    {"schedule_end", schedule_end},
    {"metric_directions", metric_directions},
    {"sweep_metric", sweep_metric},
    {"sweep_isolation", sweep_isolation},
    {"metric_once", metric_once},
    {"monitored_metric", monitored_metric},
    {"monitor_needs_evaluation", monitor_needs_evaluation},
    {"something_to_evaluate", something_to_evaluate},
    {"time_for_the_save", time_for_the_save},
    {"micro_batch_can_shrink", micro_batch_can_shrink},
    {"somewhere_to_roll_back_to", somewhere_to_roll_back_to},
    {"init_from_source", init_from_source},
    {"init_from_rename", init_from_rename},
    {"precision_keys", precision_keys},
    {"profiler_activities", profiler_activities},
    {"machines", machines},
    {"gpus", gpus},
    {"exchanges", exchanges},
    {"local_sgd", local_sgd},
    {"one_process", one_process},
    {"one_average", one_average},
    {"error_feedback", error_feedback},
    {"tracker_names", tracker_names},
    {"tracker_places", tracker_places},
};

}  // namespace

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const Rule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

void settle(Node& recipe, core::Diagnostics& diagnostics,
            const std::function<std::string(const std::string&)>& meant_metric) {
  if (!recipe.is_mapping()) return;
  SettledTree tree(recipe, diagnostics, meant_metric);
  for (const Rule& rule : kRules) rule.apply(tree);
}

}  // namespace runner::resolve
