// Heads of Transformers' models: which one is meant, and what does not fit. That they compute what Transformers
// computes is tests/golden/torch/pretrained_test.cpp.

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "components/part/weight.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "runner/core/text/text.h"
#include "runner/pretrained/model_type.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

using components::BatchSpec;
using components::Dtype;
using components::kBatch;
using components::kTarget;
using components::kTime;
using components::TensorSpec;

namespace {

constexpr const char* kLlama =
    "model_type: llama, vocab_size: 40, hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, "
    "num_attention_heads: 2, max_position_embeddings: 16";

struct Asked {
  std::shared_ptr<components::model::Model> model;
  std::string messages;
};

/// `keys` of the model beside the configuration, and `fields` of that beside kLlama's.
Asked ask(const std::string& keys, const std::string& fields, const BatchSpec& data) {
  const auto node =
      tests::block("model", "{type: transformers, config: {" + std::string(kLlama) +
                                (fields.empty() ? "" : ", " + fields) + "}" + (keys.empty() ? "" : ", " + keys) + "}");
  runner::core::Diagnostics diagnostics;
  components::part::MetaWeights weights;
  Asked asked{components::model::build(node, {data, weights, node, diagnostics}), ""};
  asked.messages = runner::core::render(diagnostics, {.color = false, .excerpts = false});
  return asked;
}

BatchSpec with_target(const TensorSpec& target) {
  BatchSpec data = tests::text_data(40, 16);
  *data.find(kTarget) = target;
  return data;
}

TensorSpec classes(std::int64_t count, bool of_tokens = false) {
  TensorSpec target{kTarget, Dtype::kInt64, {kBatch}, false};
  if (of_tokens) target.shape.push_back(kTime);
  target.num_classes = count;
  return target;
}

TensorSpec values(std::int64_t count) { return {kTarget, Dtype::kFloat32, {kBatch, count}, false}; }

/// `[batch, 3]` of its output.
std::string output_of(const Asked& asked) {
  INFO(asked.messages);
  REQUIRE(asked.model != nullptr);
  return components::to_text(asked.model->outputs().front());
}

}  // namespace

TEST_CASE("a head is the recipe's, or that of the configuration's class", "[model][transformers]") {
  const BatchSpec text = tests::text_data(40, 16), three = with_target(classes(3));
  CHECK(output_of(ask("", "", text)) == "float32 [batch, time, 40]");
  CHECK(output_of(ask("", "architectures: [LlamaModel]", text)) == "float32 [batch, time, 40]");
  CHECK(output_of(ask("", "architectures: [LlamaForSequenceClassification]", three)) == "float32 [batch, 3]");
  CHECK(output_of(ask("head: sequence_classification", "", three)) == "float32 [batch, 3]");
  CHECK(output_of(ask("head: causal_lm", "architectures: [LlamaForTokenClassification]", text)) ==
        "float32 [batch, time, 40]");
  const BatchSpec tags = with_target(classes(4, true));
  CHECK(output_of(ask("", "architectures: [LlamaForTokenClassification]", tags)) == "float32 [batch, time, 4]");
}

TEST_CASE("a head has as many outputs as recipe, data or configuration say", "[model][transformers]") {
  const std::string head = "head: sequence_classification";
  const BatchSpec three = with_target(classes(3)), none = with_target(classes(0));
  CHECK(output_of(ask(head, "num_labels: 5", three)) == "float32 [batch, 3]");
  CHECK(output_of(ask(head + ", num_labels: 4", "", three)) == "float32 [batch, 4]");
  CHECK(output_of(ask(head, "num_labels: 5", none)) == "float32 [batch, 5]");
  CHECK(output_of(ask(head, "id2label: {0: A, 1: B, 2: C}", none)) == "float32 [batch, 3]");
  CHECK(output_of(ask(head, "", none)) == "float32 [batch, 2]");
  CHECK(output_of(ask(head, "", with_target(values(1)))) == "float32 [batch, 1]");
}

TEST_CASE("an encoder says with which head it is trained, and is not asked for the next token",
          "[model][transformers]") {
  const std::string bert =
      "{type: transformers, config: {model_type: bert, vocab_size: 40, hidden_size: 8, intermediate_size: 8, "
      "num_hidden_layers: 1, num_attention_heads: 2, max_position_embeddings: 16";
  struct Case {
    std::string model, message;
  };
  const Case cases[] = {
      {bert + ", architectures: [BertModel]}}",
       "model.yaml:1:1: error: the configuration of this bert names no class with a head\n"
       "  hint: set model.head to one of masked_lm, sequence_classification, token_classification, embedding, "
       "question_answering, multiple_choice\n"},
      {bert + "}, head: causal_lm}",
       "model.yaml:1:185: error: head is causal_lm, which bert does not have in Transformers\n"
       "  hint: it has masked_lm, sequence_classification, token_classification, embedding, question_answering, "
       "multiple_choice\n"},
      {bert + ", architectures: [BertForMaskedLM]}}",
       "model.yaml:1:1: error: bert looks at the whole text, and the data's target is each next token of it\n"
       "  hint: add transforms: [{type: mask_tokens}] to data.train, or use a model for causal language modelling\n"},
      {bert + ", is_decoder: true}, head: masked_lm}",
       "model.yaml:1:190: error: is_decoder is true, and roux computes such a bert with false only\n"},
      {"{type: transformers, config: {model_type: deberta-v2}}",
       "model.yaml:1:43: error: model_type is \"deberta-v2\", which roux does not read: its attention adds scores of "
       "relative positions\n"
       "  hint: it reads " +
           runner::core::joined(runner::pretrained::model_types()) + "\n"},
  };
  for (const Case& one : cases) {
    const auto node = tests::block("model", one.model);
    const BatchSpec data = tests::text_data(40, 16);
    runner::core::Diagnostics diagnostics;
    components::part::MetaWeights weights;
    CHECK(components::model::build(node, {data, weights, node, diagnostics}) == nullptr);
    CHECK(runner::core::render(diagnostics, {.color = false, .excerpts = false}) == one.message);
  }
}

TEST_CASE("a text is continued by logits of each next token alone", "[model][transformers]") {
  const BatchSpec text = tests::text_data(40, 16);
  const auto continues = [](const Asked& asked) {
    INFO(asked.messages);
    REQUIRE(asked.model != nullptr);
    return asked.model->continues_text();
  };
  CHECK(continues(ask("", "", text)));
  CHECK_FALSE(continues(ask("head: sequence_classification", "", with_target(classes(3)))));
  CHECK_FALSE(continues(ask("head: token_classification", "", with_target(classes(3, true)))));
  BatchSpec masked = text;
  masked.find(kTarget)->in_place = true;
  for (const char* type : {"bert", "roberta", "distilbert", "modernbert"}) {
    INFO(type);
    const std::string sizes =
        std::string(type) == "distilbert"
            ? "dim: 8, hidden_dim: 8, n_layers: 1, n_heads: 2"
            : "hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 2";
    const auto node =
        tests::block("model", "{type: transformers, head: masked_lm, config: {model_type: " + std::string(type) +
                                  ", vocab_size: 40, pad_token_id: 1, " + sizes + ", max_position_embeddings: 18}}");
    runner::core::Diagnostics diagnostics;
    components::part::MetaWeights weights;
    CHECK_FALSE(continues(
        {components::model::build(node, {masked, weights, node, diagnostics}), runner::core::render(diagnostics)}));
  }
}

TEST_CASE("a head that does not fit is one error", "[model][transformers]") {
  struct Case {
    std::string keys, fields;
    BatchSpec data;
    std::string message;
  };
  BatchSpec packed = with_target(classes(3, true));
  packed.tensors.push_back({components::kPositions, Dtype::kInt64, {kBatch, kTime}, false});
  const std::string texts = "head: sequence_classification";
  const std::vector<Case> cases = {
      {"head: masked_lm", "", tests::text_data(40, 16),
       "model.yaml:1:186: error: head is masked_lm, which llama does not have in Transformers\n"
       "  hint: it has causal_lm, sequence_classification, token_classification, embedding\n"},
      {texts, "", tests::text_data(40, 16),
       "model.yaml:1:1: error: head sequence_classification learns a class or values for each text, but the data's "
       "target is int64 [batch, time], ids of a vocabulary\n"
       "  hint: use data with labels, pairs with the loss reward, or another model.head\n"},
      {"head: token_classification", "", with_target(classes(3)),
       "model.yaml:1:1: error: head token_classification learns a class for each token, but the data's target is int64 "
       "[batch]\n"
       "  hint: use data with labels, pairs with the loss reward, or another model.head\n"},
      {texts + ", num_labels: 2", "", with_target(classes(3)),
       "model.yaml:1:223: error: num_labels is 2, but the data have 3 classes\n"
       "  hint: set num_labels to 3 or leave it out\n"},
      {texts + ", num_labels: 2", "", with_target(values(1)),
       "model.yaml:1:223: error: num_labels is 2, but the data have 1 value for each text\n"
       "  hint: set num_labels to 1 or leave it out\n"},
      {"num_labels: 2", "", tests::text_data(40, 16),
       "model.yaml:1:192: error: num_labels is set, but the model's head is causal_lm\n"
       "  hint: remove it, or set head: sequence_classification\n"},
      {"head: token_classification", "", packed,
       "model.yaml:1:1: error: a head of classes reads one text from a row, and the data put several into each\n"
       "  hint: remove packing from the data\n"},
      {texts, "problem_type: regression", with_target(classes(3)),
       "model.yaml:1:193: error: problem_type is regression, but the data's target is int64 [batch], one class for "
       "each "
       "text\n"
       "  hint: set model.problem_type to single_label_classification, or use data with values\n"},
      {texts, "problem_type: single_label_classification", with_target(values(3)),
       "model.yaml:1:193: error: problem_type is single_label_classification, but the data's target is float32 [batch, "
       "3], "
       "values for each text\n"
       "  hint: set model.problem_type to regression, or use data with classes\n"},
      {texts, "problem_type: ranking", with_target(values(3)),
       "model.yaml:1:193: error: problem_type is \"ranking\", which Transformers does not have\n"
       "  hint: it has single_label_classification, multi_label_classification and regression\n"},
  };
  for (const Case& one : cases) {
    const Asked asked = ask(one.keys, one.fields, one.data);
    CHECK(asked.model == nullptr);
    CHECK(asked.messages == one.message);
  }
}
