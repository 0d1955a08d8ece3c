#include "components/model/head_of_config.h"

#include <string>
#include <vector>

#include "components/part/activation.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/several_texts.h"
#include "runner/pretrained/model_type.h"

namespace components::model::transformers {
namespace {

using runner::core::Node;
using runner::pretrained::Facts;

/// Classes, or values of a regression: those of the recipe, of the data's target, or of the configuration. Nothing, and
/// an error, where the first two differ.
std::optional<std::int64_t> labels_of(const Config& config, const Facts& facts, const Inputs& inputs) {
  const TensorSpec* target = inputs.data.find(kTarget);
  const bool has_values = target != nullptr && target->dtype == Dtype::kFloat32;
  const std::int64_t of_data = target == nullptr                         ? 0
                               : has_values && target->shape.size() == 2 ? target->shape[1]
                                                                         : target->num_classes;
  if (!config.num_labels) return of_data > 0 ? of_data : facts.labels();
  const bool fits = of_data <= 0 || (has_values ? *config.num_labels == of_data : *config.num_labels >= of_data);
  if (fits) return *config.num_labels;
  const std::string count = std::to_string(of_data);
  inputs.diagnostics.error(inputs.block.find("num_labels")->location(),
                           "num_labels is " + std::to_string(*config.num_labels) + ", but the data have " + count +
                               (has_values ? (of_data == 1 ? " value" : " values") + std::string(" for each text")
                                           : std::string(of_data == 1 ? " class" : " classes")),
                           "set num_labels to " + count + " or leave it out");
  return std::nullopt;
}

/// False, and an error, when the target is not what such a head is trained by.
bool fits_target(const std::string& head, bool of_texts, const Inputs& inputs) {
  const TensorSpec* target = inputs.data.find(kTarget);
  if (target == nullptr) return true;
  const bool has_values = target->dtype == Dtype::kFloat32 && target->shape.size() == 2;
  const bool has_classes = target->dtype == Dtype::kInt64 && target->vocab_size == 0;
  const bool fits =
      of_texts ? has_values || (has_classes && target->shape.size() == 1) : has_classes && target->shape.size() == 2;
  if (fits) return true;
  inputs.diagnostics.error(
      inputs.block.location(),
      "head " + head + " learns " + (of_texts ? "a class or values for each text" : "a class for each token") +
          ", but the data's target is " + to_text(*target) + (target->vocab_size > 0 ? ", ids of a vocabulary" : ""),
      "use data with labels, pairs with the loss reward, or another model.head");
  return false;
}

/// False, and an error, when the target is of another kind than the problem that model or configuration name.
bool fits_problem(const Node& config, const Inputs& inputs) {
  namespace pretrained = runner::pretrained;
  const TensorSpec* target = inputs.data.find(kTarget);
  const Node* problem = inputs.block.find("problem_type");
  if (problem == nullptr || !problem->is_string()) problem = config.find("problem_type");
  if (problem == nullptr || !problem->is_string() || target == nullptr) return true;
  const std::string& name = problem->as_string();
  if (name != pretrained::kOneLabel && name != pretrained::kSeveralLabels && name != pretrained::kRegression) {
    inputs.diagnostics.error(problem->location(), "problem_type is \"" + name + "\", which Transformers does not have",
                             std::string("it has ") + pretrained::kOneLabel + ", " + pretrained::kSeveralLabels +
                                 " and " + pretrained::kRegression);
    return false;
  }
  const bool has_classes = target->dtype == Dtype::kInt64;
  if (has_classes == (name == pretrained::kOneLabel)) return true;
  inputs.diagnostics.error(problem->location(),
                           "problem_type is " + name + ", but the data's target is " + to_text(*target) +
                               (has_classes ? ", one class for each text" : ", values for each text"),
                           std::string("set model.problem_type to ") +
                               (has_classes ? pretrained::kOneLabel : pretrained::kRegression) + ", or use data with " +
                               (has_classes ? "values" : "classes"));
  return false;
}

/// Which position speaks for a text. Nothing, and an error, when Transformers has no such way.
std::optional<HeadOptions::Pool> pool_of(const Facts& facts, const Inputs& inputs) {
  const std::string name = facts.text("output.pool");
  if (name == "cls") return HeadOptions::Pool::kFirst;
  if (name == "mean") return HeadOptions::Pool::kMean;
  if (name == "last") return HeadOptions::Pool::kLast;
  inputs.diagnostics.error(facts.find("output.pool")->location(),
                           facts.field("output.pool") + " is " + name + ", which Transformers does not have",
                           "it has cls and mean");
  return std::nullopt;
}

/// Of a head that gives each text of a pair a value. False, and an error, when it gives more, or has another position
/// speak for a text than the last one.
bool settle_rewards(const Config& config, const Facts& facts, const Inputs& inputs, HeadOptions& head) {
  const auto refuse = [&](const char* key, const std::string& what, const std::string& hint) {
    const Node* at = inputs.block.find(key);
    inputs.diagnostics.error(at != nullptr ? at->location() : inputs.block.location(), what, hint);
    return false;
  };
  if (facts.text("output.pool") != "last") {
    return refuse("head", "rewards of pairs are told by models whose last token speaks for a text, such as llama",
                  "use a decoder, or data with labels");
  }
  if (config.num_labels.value_or(facts.labels()) != 1) {
    return refuse("num_labels",
                  "the head tells " + std::to_string(config.num_labels.value_or(facts.labels())) +
                      " values, and the data are pairs, each text of which has one",
                  "set model.num_labels to 1");
  }
  head.of = HeadOptions::Of::kTexts;
  head.pool = HeadOptions::Pool::kLast;
  head.of_pairs = true;
  head.classes = 1;
  if (const Node* padding = facts.find("output.padding")) head.padding_id = padding->as_integer();
  return true;
}

/// Dropout of a head of classes.
void settle_dropout(const Config& config, const Facts& facts, HeadOptions& head) {
  const auto rate = [&](const char* role) {
    return config.dropout && facts.has(role) ? *config.dropout : facts.number(role, 0);
  };
  head.first_dropout = rate("output.first_dropout");
  head.dropout = rate("output.dropout");
}

/// Of a head for classes. False, and an error, when recipe, configuration and data do not fit together.
bool settle_classes(const Config& config, const std::string& name, const Facts& facts, const Node& checked,
                    const Inputs& inputs, HeadOptions& head) {
  const bool of_texts = name == runner::pretrained::kSequenceClassification;
  if (inputs.data.find(kRejectedAt) != nullptr) return settle_rewards(config, facts, inputs, head);
  if (inputs.data.find(kPositions) != nullptr) {
    inputs.diagnostics.error(inputs.block.location(),
                             "a head of classes reads one text from a row, and the data put several into each",
                             "remove packing from the data");
    return false;
  }
  if (!fits_target(name, of_texts, inputs) || (of_texts && !fits_problem(checked, inputs))) return false;
  const std::optional<std::int64_t> labels = labels_of(config, facts, inputs);
  const std::optional<HeadOptions::Pool> pool =
      of_texts ? pool_of(facts, inputs) : std::make_optional(HeadOptions::Pool::kFirst);
  if (!labels || !pool) return false;
  head.of = of_texts ? HeadOptions::Of::kTexts : HeadOptions::Of::kPositions;
  head.pool = *pool;
  head.classes = *labels;
  settle_dropout(config, facts, head);
  if (const Node* padding = facts.find("output.padding")) head.padding_id = padding->as_integer();
  return true;
}

/// Of a head that tells where an answer begins and ends. False, and an error, when the data have no answers.
bool settle_spans(const Config& config, const Facts& facts, const Inputs& inputs, HeadOptions& head) {
  const TensorSpec* target = inputs.data.find(kTarget);
  const bool fits =
      target == nullptr || (target->dtype == Dtype::kInt64 && target->shape == std::vector<std::int64_t>{kBatch, 2});
  if (!fits || inputs.data.find(kPositions) != nullptr) {
    inputs.diagnostics.error(inputs.block.location(),
                             "head question_answering learns the first and last token of an answer, but the data's "
                             "target is " +
                                 (target != nullptr ? to_text(*target) : "none"),
                             "use data with question, context and answers, or another model.head");
    return false;
  }
  head.of = HeadOptions::Of::kPositions;
  head.classes = 2;
  settle_dropout(config, facts, head);
  return true;
}

/// Of a head that gives each of several choices a value. False, and an error, when the data have none.
bool settle_choices(const Config& config, const Facts& facts, const Inputs& inputs, HeadOptions& head) {
  if (inputs.data.find(kTextsAt) == nullptr) {
    inputs.diagnostics.error(inputs.block.location(),
                             "head multiple_choice learns which of several texts is right, but the data has none",
                             "use data with a question and choices, or another model.head");
    return false;
  }
  const std::optional<HeadOptions::Pool> pool = pool_of(facts, inputs);
  if (!pool) return false;
  head.of = HeadOptions::Of::kTexts;
  head.pool = *pool;
  head.of_choices = true;
  head.classes = 1;
  settle_dropout(config, facts, head);
  return true;
}

/// Of a head that gives each text a vector. False, and an error, when the data put texts into a row that are no
/// record's.
bool settle_vectors(const Config& config, const Facts& facts, const Inputs& inputs, HeadOptions& head) {
  const bool has_others = inputs.data.find(kPositions) != nullptr && inputs.data.find(kTextsAt) == nullptr;
  if (has_others || inputs.data.find(kRejectedAt) != nullptr) {
    inputs.diagnostics.error(inputs.block.location(),
                             "a head of embeddings reads the texts of a record, and the data put others into its row",
                             "remove packing, and use the loss multiple_negatives or cosine_similarity");
    return false;
  }
  const std::string pooling = config.pooling ? std::string(to_text(*config.pooling)) : facts.text("output.pool");
  head.of = HeadOptions::Of::kVectors;
  head.pool = pooling == "cls"    ? HeadOptions::Pool::kFirst
              : pooling == "mean" ? HeadOptions::Pool::kMean
                                  : HeadOptions::Pool::kLast;
  head.normalized = config.normalize.value_or(true);
  return true;
}

/// False, and an error, where a key is set that the head does not have.
bool fits_keys(const Config& config, const runner::pretrained::ModelType& type, const Inputs& inputs) {
  const auto refuse = [&](const char* key, const char* head) {
    inputs.diagnostics.error(inputs.block.find(key)->location(),
                             std::string(key) + " is set, but the model's head is " + type.head,
                             std::string("remove it, or set head: ") + head);
    return false;
  };
  const bool has_vectors = type.head == runner::pretrained::kEmbedding;
  const bool has_no_problem = has_vectors || type.head == runner::pretrained::kQuestionAnswering ||
                              type.head == runner::pretrained::kMultipleChoice;
  if (config.num_labels && !type.tells_labels()) return refuse("num_labels", "sequence_classification");
  if (config.problem_type && has_no_problem) return refuse("problem_type", "sequence_classification");
  if (config.pooling && !has_vectors) return refuse("pooling", "embedding");
  if (config.normalize && !has_vectors) return refuse("normalize", "embedding");
  return true;
}

/// False, and an error, where the target is the next token, which a model that looks both ways has seen.
bool fits_masked(const runner::pretrained::ModelType& type, const Inputs& inputs) {
  const TensorSpec* target = inputs.data.find(kTarget);
  if (type.head != runner::pretrained::kMaskedLm || target == nullptr || target->in_place) return true;
  inputs.diagnostics.error(
      inputs.block.location(), type.name + " looks at the whole text, and the data's target is each next token of it",
      "add transforms: [{type: mask_tokens}] to data.train, or use a model for causal language modelling");
  return false;
}

}  // namespace

std::optional<part::Activation> activation_of(const Facts& facts, const std::string& role, const Inputs& inputs) {
  const std::string name = facts.text(role);
  const std::optional<part::Activation> activation = part::activation_named(facts.activation(role));
  if (!activation) {
    inputs.diagnostics.error(facts.find(role)->location(),
                             facts.field(role) + " is " + name + ", which roux does not compute",
                             std::string("it computes ") + part::activation_names());
  }
  return activation;
}

bool settle_head(const Config& config, const runner::pretrained::ModelType& type, const Facts& facts,
                 const Node& checked, const Inputs& inputs, HeadOptions& head) {
  if (!fits_keys(config, type, inputs)) return false;
  head.bias = facts.flag("output.bias");
  if (facts.has("output.dense")) {
    const std::optional<part::Activation> activation = activation_of(facts, "output.dense", inputs);
    if (!activation) return false;
    head.dense = HeadOptions::Dense{*activation, facts.flag("output.dense_bias"), facts.flag("output.dense_norm")};
  }
  if (type.head == runner::pretrained::kQuestionAnswering) return settle_spans(config, facts, inputs, head);
  if (type.head == runner::pretrained::kMultipleChoice) return settle_choices(config, facts, inputs, head);
  if (type.head == runner::pretrained::kEmbedding) return settle_vectors(config, facts, inputs, head);
  if (!type.is_language_model()) return settle_classes(config, type.head, facts, checked, inputs, head);
  return fits_masked(type, inputs);
}

}  // namespace components::model::transformers
