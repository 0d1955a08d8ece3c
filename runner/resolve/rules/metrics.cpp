#include "runner/resolve/rules/rules.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/metric_direction.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/pretrained/model_type.h"
#include "runner/registry/wording.h"

namespace runner::resolve {

using core::Node;
using registry::enumerated;

namespace {

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Behind the name of a metric that has a value for each class: that of the first one, which stands for all of them, as
/// the data alone know how many there are.
constexpr const char* kFirstClass = "/0";

/// Whether one of the names is that metric, or the first class of it.
bool is_measured(const std::vector<std::string>& names, const std::string& metric) {
  if (contains(names, metric)) return true;
  const std::size_t slash = metric.rfind('/');
  if (slash == std::string::npos || slash + 1 == metric.size()) return false;
  return contains(names, metric.substr(0, slash) + kFirstClass);
}

/// What a metric of the list measures, itself first; nothing where its type was refused.
std::vector<std::string> names_of(SettledTree& tree, const Node& metric) {
  const Node* type = metric.find("type");
  if (type == nullptr || !type->is_string()) return {};
  std::vector<std::string> names = tree.measures("metric", type->as_string());
  const Node* name = metric.find("name");
  if (name != nullptr && name->is_string()) names = {name->as_string()};
  if (names.empty()) names.push_back(type->as_string());
  const auto [key, value] = tree.by_class(type->as_string());
  const Node* written = metric.find(key);
  if (written != nullptr && written->is_string() && written->as_string() == value) {
    for (std::string& name : names) name += kFirstClass;
  }
  return names;
}

/// `loss`, the names of eval.metrics and what the loss measures beside; nothing when the list was refused.
std::optional<std::vector<std::string>> metric_names(SettledTree& tree) {
  const Node* metrics = tree.value("eval.metrics");
  if (metrics == nullptr || !metrics->is_sequence()) return std::nullopt;
  std::vector<std::string> names = {"loss"};
  for (const Node& metric : metrics->items()) {
    std::vector<std::string> of_metric = names_of(tree, metric);
    if (of_metric.empty()) return std::nullopt;
    std::move(of_metric.begin(), of_metric.end(), std::back_inserter(names));
  }
  for (std::string& name : tree.measures("loss", tree.text("loss.type").value_or(""))) names.push_back(std::move(name));
  return names;
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
bool is_maximized(const std::string& metric) {
  return core::metric_direction(metric) == core::MetricDirection::kHigher;
}

/// The metric that a word names or most likely means, one that is measured first; "" for none.
std::string meant_metric(const SettledTree& tree, const std::string& word, const std::vector<std::string>& measured) {
  const std::string near = core::closest(word, measured);
  return near.empty() ? tree.meant_metric(word) : near;
}

/// Whether the metric can be measured beside this loss: a regression has no accuracy, and losses of pairs measure what
/// these have themselves.
bool fits_loss(SettledTree& tree, const std::string& metric) {
  const std::string loss = tree.text("loss.type").value_or("");
  const std::string of_metric = tree.target_of("metric", metric), of_loss = tree.target_of("loss", loss);
  // Labels, each true or false, are classes and values.
  return of_metric.empty() || of_metric == "texts" ||
         (of_loss.empty() ? tree.measures("loss", loss).empty() : of_loss == of_metric || of_loss == "labels");
}

/// `write val/loss` for `loss`, `val_loss` and `eval_loss`.
core::Hint monitor_hint(SettledTree& tree, const std::string& monitor, const std::vector<std::string>& sets,
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
  const std::string right = set + "/" + (meant.empty() || !fits_loss(tree, meant) ? "loss" : meant);
  if (right == set + "/loss" || contains(measured, meant)) return {"write " + right, right};
  return "write " + right + ", and add it to eval.metrics: [" + meant + "]";
}

/// How to name one of the metrics of `set` in place of `metric`.
core::Hint metric_hint(SettledTree& tree, const std::string& set, const std::string& metric,
                       const std::vector<std::string>& measured) {
  std::string meant = meant_metric(tree, metric, measured);
  if (!fits_loss(tree, meant)) meant.clear();
  if (contains(measured, meant)) return {"did you mean " + set + "/" + meant + "?", set + "/" + meant};
  for (const std::string& name : tree.measures("metric", meant)) {
    if (contains(measured, name)) return {"did you mean " + set + "/" + name + "?", set + "/" + name};
  }
  if (meant == metric) return "add it to eval.metrics: [" + metric + "]";
  if (!meant.empty()) return "write " + set + "/" + meant + ", and add it to eval.metrics: [" + meant + "]";
  std::vector<std::string> names;
  for (const std::string& name : measured) names.push_back(set + "/" + name);
  const std::string measurable = "it can be " + enumerated(names, "or", names.size());
  if (tree.target_of("loss", tree.text("loss.type").value_or("")) == "values") {
    const std::vector<std::string> of_values = tree.metrics_of("values");
    return measurable + ", or with eval.metrics " + enumerated(of_values, "or", of_values.size());
  }
  return measurable + "; `roux list metric` shows what eval.metrics accepts";
}

}  // namespace

/// The directions that the author left to the metrics. A sweep's single metric is settled below.
void metric_directions(SettledTree& tree) {
  const auto settle = [&tree](const std::string& block, const char* metric, const char* direction, const char* lower,
                              const char* higher) {
    const std::string name = tree.text(block + metric).value_or("");
    const std::string why = name.empty() ? "default" : "the direction of " + name;
    tree.fill(block + direction, Node::string(is_maximized(name) ? higher : lower), why,
              name.empty() ? core::Origin::kDefault : core::Origin::kSettled);
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

/// Of one that is listed again: its name has its average behind it. A name is what tells which way is better.
void name_metric(SettledTree& tree, const std::string& path, const std::vector<std::string>& before) {
  const std::string type = tree.text(path + ".type").value_or("");
  if (const auto name = tree.text(path + ".name")) {
    if (name->starts_with(type)) return;
    return tree.error(path + ".name", path + ".name is " + *name + ", which does not begin with " + type,
                      {"write " + type + "_" + *name, type + "_" + *name});
  }
  const auto average = tree.text(path + ".average");
  const bool may_have_name = tree.root().at_path(path + ".name") != nullptr;
  if (!may_have_name || !average || !contains(before, type)) return;
  tree.fill(path + ".name", Node::string(type + "_" + *average), type + " is listed before it");
}

void metric_once(SettledTree& tree) {
  const Node* metrics = tree.value("eval.metrics");
  if (metrics == nullptr || !metrics->is_sequence()) return;
  std::vector<std::string> names, types;
  for (std::size_t i = 0; i < metrics->items().size(); ++i) {
    const std::string path = "eval.metrics[" + std::to_string(i) + "]";
    name_metric(tree, path, types);
    const std::vector<std::string> of_metric = names_of(tree, tree.value("eval.metrics")->items()[i]);
    if (of_metric.empty()) continue;
    const std::string& name = of_metric.front();
    if (contains(names, name)) {
      const bool has_name = tree.value("eval.metrics")->items()[i].find("name") != nullptr;
      tree.error(path, "eval.metrics has " + name + " twice",
                 has_name ? "keep one of them, or give the second another average or a name" : "keep one of them");
    }
    names.push_back(name);
    types.push_back(tree.text(path + ".type").value_or(""));
  }
}

/// Texts are generated where there is a metric of them, and such a metric needs them.
void metrics_of_texts(SettledTree& tree) {
  const Node* metrics = tree.value("eval.metrics");
  if (metrics == nullptr || !metrics->is_sequence() || tree.was_refused("eval.generate")) return;
  const bool generates = tree.value("eval.generate") != nullptr;
  const Node* model = tree.value("model");
  const pretrained::ModelType* type_of_model =
      model != nullptr && model->is_mapping() ? pretrained::model_type_of(*model) : nullptr;
  const bool answers = type_of_model != nullptr && type_of_model->head == pretrained::kQuestionAnswering;
  if (answers && generates) {
    return tree.error("eval.generate",
                      "eval.generate makes texts, and the model's head finds answers in their contexts",
                      "remove it: metrics of texts judge these answers");
  }
  if (answers) return;
  const bool writes = type_of_model == nullptr || type_of_model->is_language_model();
  bool are_judged = false;
  for (std::size_t i = 0; i < metrics->items().size(); ++i) {
    const Node* type = metrics->items()[i].find("type");
    if (type == nullptr || !type->is_string() || tree.target_of("metric", type->as_string()) != "texts") continue;
    are_judged = true;
    if (!writes) {
      const std::string target = tree.target_of("loss", tree.text("loss.type").value_or(""));
      tree.error(
          "eval.metrics[" + std::to_string(i) + "]",
          type->as_string() + " judges texts that a model writes, and this one has the head " + type_of_model->head,
          target == "values"    ? "use pearson or mae"
          : target == "classes" ? "use accuracy or f1"
                                : "remove it");
      continue;
    }
    if (generates) continue;
    tree.error("eval.metrics[" + std::to_string(i) + "]",
               type->as_string() + " judges texts that the model generates, and eval has no generate",
               "add eval: {generate: {max_new_tokens: 64}}");
  }
  if (!generates) return;
  if (!are_judged) {
    const std::vector<std::string> of_texts = tree.metrics_of("texts");
    tree.error("eval.generate", "eval.generate makes texts that no metric judges",
               "add one to eval.metrics: " + enumerated(of_texts, "or", of_texts.size()) + "; or remove it");
  }
  const auto least = tree.integer("eval.generate.min_new_tokens"), most = tree.integer("eval.generate.max_new_tokens");
  if (least && most && *least > *most) {
    tree.error("eval.generate.min_new_tokens",
               "eval.generate.min_new_tokens is " + std::to_string(*least) + ", but max_new_tokens ends a text at " +
                   std::to_string(*most),
               "raise max_new_tokens");
  }
  if (tree.text("parallelism.shard").value_or("none") == "parameters") {
    tree.error("eval.generate", "eval.generate needs whole parameters, and parallelism.shard is parameters",
               "remove it, and measure the exported model; or shard gradients alone");
  }
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
                   sets.empty() ? core::Hint("add a data set to evaluate, such as data.val")
                                : core::Hint("write " + sets[0] + "/" + metric, sets[0] + "/" + metric));
        continue;
      }
      const std::string near = core::closest(set, sets);
      tree.error(path, path + " is " + monitor + ", but there is no data set called " + core::in_quotes(set),
                 sets.empty()   ? core::Hint("add data." + set)
                 : near.empty() ? core::Hint("there is " + enumerated(sets, "and", sets.size()))
                                : core::Hint("did you mean " + near + "/" + metric + "?", near + "/" + metric));
      continue;
    }
    if (!metrics || is_measured(*metrics, metric)) continue;
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

}  // namespace runner::resolve
