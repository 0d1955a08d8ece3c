// Encoders on the CPU, which leave out padding and run in fused nodes, against the plain operations over padded rows in
// double precision: loss and every gradient. Tasks of one seed leave out the same elements where there is dropout.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/kernels/product.h"
#include "components/loss/loss.h"
#include "components/model/model.h"
#include "components/ops/kernel_policy.h"
#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using components::Dtype;
using components::NamedTensor;
using components::TensorMap;
using components::TensorSpec;
using components::model::Model;

/// The plain operations while it lives.
struct Plain {
  Plain() { components::set_fused_kernels(false); }
  ~Plain() { components::set_fused_kernels(true); }
};

/// Matrix products and attention as on a processor without kernels of our own.
struct LibTorchProducts {
  LibTorchProducts() { components::kernels::pretend_no_product_kernel(true); }
  ~LibTorchProducts() { components::kernels::pretend_no_product_kernel(false); }
};

struct Bf16Units {
  Bf16Units() { components::pretend_bf16_units(true); }
  ~Bf16Units() { components::pretend_bf16_units(std::nullopt); }
};

constexpr std::int64_t kVocabulary = 40, kClasses = 3, kLayers = 4;

/// What a row's mask is: real positions at its beginning, or something else.
enum class Padding { kAtEnd, kAtBeginning, kHole };

struct Case {
  const char* name;
  const char* fields;  ///< of the configuration
  const char* head;
  std::vector<std::int64_t> lengths;
  std::int64_t positions;
  bool leaves_out = true;
  Padding padding = Padding::kAtEnd;
};

const char* const kBert =
    "model_type: bert, hidden_size: 24, num_attention_heads: 2, intermediate_size: 40, "
    "hidden_dropout_prob: 0, attention_probs_dropout_prob: 0";
const char* const kBertDrops =
    "model_type: bert, hidden_size: 24, num_attention_heads: 3, intermediate_size: 40, "
    "hidden_dropout_prob: 0.2, attention_probs_dropout_prob: 0.3";
const char* const kRoberta =
    "model_type: roberta, hidden_size: 24, num_attention_heads: 2, intermediate_size: 40, "
    "pad_token_id: 1, hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1";
const char* const kDistilbert =
    "model_type: distilbert, dim: 24, n_heads: 2, hidden_dim: 40, dropout: 0.1, "
    "attention_dropout: 0.1, seq_classif_dropout: 0.2";
const char* const kModern =
    "model_type: modernbert, hidden_size: 24, num_attention_heads: 2, intermediate_size: 20, "
    "local_attention: 4, global_attn_every_n_layers: 2, pad_token_id: 0";
const char* const kModernDrops =
    "model_type: modernbert, hidden_size: 24, num_attention_heads: 2, intermediate_size: 20, local_attention: 4, "
    "pad_token_id: 0, "
    "embedding_dropout: 0.1, mlp_dropout: 0, attention_dropout: 0.2, classifier_dropout: 0.1";
const char* const kRelu2 =
    "model_type: bert, hidden_size: 24, num_attention_heads: 2, intermediate_size: 40, "
    "hidden_act: relu2, hidden_dropout_prob: 0, attention_probs_dropout_prob: 0";

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"texts of several lengths", kBert, "sequence_classification", {13, 5, 1, 8}, 13},
      {"no padding", kBert, "sequence_classification", {9, 9, 9}, 9},
      {"one row of nothing but padding", kBert, "sequence_classification", {7, 0, 3}, 7},
      {"one text", kBert, "token_classification", {6}, 11},
      {"more rows than a block of attention has", kBert, "sequence_classification", {101, 60, 48, 97}, 110},
      {"tags", kBert, "token_classification", {13, 5, 1, 8}, 13},
      {"masked words", kBert, "masked_lm", {13, 5, 1, 8}, 13},
      {"dropout", kBertDrops, "sequence_classification", {13, 5, 1, 8}, 13},
      {"dropout of tags", kBertDrops, "token_classification", {70, 50, 3}, 77},
      {"dropout without padding", kBertDrops, "masked_lm", {9, 9}, 9},
      {"positions behind the padding's id", kRoberta, "sequence_classification", {13, 5, 1, 8}, 13},
      {"DistilBERT", kDistilbert, "sequence_classification", {13, 5, 1, 8}, 13},
      {"windows", kModern, "token_classification", {13, 5, 1, 8}, 13},
      {"windows over several blocks", kModern, "masked_lm", {150, 2, 101}, 160},
      {"windows without padding", kModern, "masked_lm", {60, 60}, 60},
      {"windows, the mean of each text", kModern, "sequence_classification", {13, 5, 1, 8}, 13},
      {"windows with dropout", kModernDrops, "token_classification", {13, 5, 1, 8}, 13},
      {"an activation that the kernels do not have", kRelu2, "token_classification", {13, 5, 1, 8}, 13, false},
      {"padding in front", kBertDrops, "token_classification", {13, 5, 1, 8}, 13, false, Padding::kAtBeginning},
      {"padding in the middle", kBert, "sequence_classification", {13, 5, 4, 8}, 13, false, Padding::kHole},
  };
  return all;
}

bool is_padded(const Case& c) {
  for (const std::int64_t length : c.lengths) {
    if (length < c.positions) return true;
  }
  return false;
}

struct Task {
  std::shared_ptr<Model> model;
  std::shared_ptr<components::loss::Loss> loss;
  at::Tensor ids, mask, target;
  std::vector<std::int64_t> stream;  ///< the sizes of what the first block gave

  Task(const Case& c, std::uint64_t seed) {
    at::manual_seed(seed);
    const auto samples = static_cast<std::int64_t>(c.lengths.size());
    const std::string head = c.head;
    components::BatchSpec data = tests::text_data(kVocabulary, c.positions);
    data.tensors.push_back({components::kAttentionMask, Dtype::kBool, {components::kBatch, components::kTime}, false});
    TensorSpec of_target{components::kTarget, Dtype::kInt64, {components::kBatch}, false};
    if (head != "sequence_classification") of_target.shape.push_back(components::kTime);
    if (head == "masked_lm") {
      of_target.vocab_size = kVocabulary;
      of_target.in_place = true;
    } else {
      of_target.num_classes = kClasses;
    }
    of_target.has_ignored = true;
    *data.find(components::kTarget) = of_target;
    model = tests::make_model(
        "{type: transformers, head: " + head + ", config: {" + c.fields +
            (std::string(c.fields).find("distilbert") != std::string::npos
                 ? ", n_layers: " + std::to_string(kLayers)
                 : ", num_hidden_layers: " + std::to_string(kLayers)) +
            ", vocab_size: 40, max_position_embeddings: 200" +
            (std::string(c.name).find("mean") != std::string::npos ? ", classifier_pooling: mean" : "") + "}}",
        data);
    const at::NoGradGuard no_grad;
    // As if it had been trained: norms and biases are no longer ones and zeros.
    for (const NamedTensor& parameter : model->parameters()) {
      parameter.tensor.add_(torch::randn(parameter.tensor.sizes()).mul_(0.1));
    }
    const auto node = tests::block("loss", "cross_entropy");
    runner::core::Diagnostics diagnostics;
    loss = components::loss::build(node, {model->outputs(), data, node, diagnostics});
    ids = at::randint(2, kVocabulary, {samples, c.positions}, at::kLong);
    mask = at::zeros({samples, c.positions}, at::kBool);
    for (std::int64_t row = 0; row < samples; ++row) {
      const std::int64_t length = c.lengths[static_cast<std::size_t>(row)];
      const std::int64_t first = c.padding == Padding::kAtBeginning ? c.positions - length : 0;
      if (length > 0) mask[row].narrow(0, first, length).fill_(true);
      if (c.padding == Padding::kHole) mask[row][1].fill_(false);
    }
    ids.masked_fill_(mask.logical_not(), 1);
    if (head == "sequence_classification") {
      target = at::randint(kClasses, {samples}, at::kLong);
    } else {
      target = at::randint(head == "masked_lm" ? kVocabulary : kClasses, {samples, c.positions}, at::kLong);
      target.masked_fill_(mask.logical_not(), -100);
    }
    model->add_hooks({.before_forward = {}, .after_forward = [this](const auto& block, TensorMap& activations) {
                        if (block.name() == "embed") stream = activations.at("x").sizes().vec();
                      }});
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  void to_double() {
    for (const NamedTensor& parameter : model->parameters())
      parameter.tensor.set_data(parameter.tensor.to(at::kDouble));
  }

  TensorMap batch() const {
    TensorMap tensors;
    tensors.set(components::kInput, ids);
    tensors.set(components::kAttentionMask, mask);
    return tensors;
  }

  double forward_backward(bool bf16 = false) {
    TensorMap tensors = batch();
    at::Tensor sum;
    {
      using components::AutocastOptions;
      const components::Autocast autocast({bf16 ? AutocastOptions::Type::kBf16 : AutocastOptions::Type::kNone});
      model->forward_for_loss(tensors);
      tensors.set(components::kTarget, target);
      sum = loss->sum(tensors, 0.25);
    }
    torch::autograd::backward({sum}, {at::scalar_tensor(0.25, sum.options().requires_grad(false))});
    return sum.item<double>();
  }
};

/// What rounding to bfloat16 may change, as a share of the largest number: as in fused_decoder_test.cpp.
double bf16_bound() { return 3 * 0x1p-8 * std::sqrt((26.0 * kLayers + 5) / 3); }

/// The largest difference of a gradient, by the largest entry.
void check_gradients(const Task& found, const Task& expected, double bound) {
  const auto got = found.model->parameters(), wanted = expected.model->parameters();
  REQUIRE(got.size() == wanted.size());
  double all = 0;
  for (const NamedTensor& parameter : wanted) {
    all = std::max(all, parameter.tensor.grad().abs().max().item<double>());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(got[i].name);
    REQUIRE(got[i].tensor.grad().defined());
    const at::Tensor reference = wanted[i].tensor.grad().to(at::kDouble);
    const double largest = std::max(reference.abs().max().item<double>(), 1e-3 * all);
    CHECK((got[i].tensor.grad().to(at::kDouble) - reference).abs().max().item<double>() <= bound * largest);
  }
}

void check_same_bits(const Task& one, const Task& other) {
  const auto a = one.model->parameters(), b = other.model->parameters();
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].name);
    CHECK(a[i].tensor.grad().equal(b[i].tensor.grad()));
  }
}

}  // namespace

TEST_CASE("an encoder without its padding gives the loss and gradients of the padded batch", "[model][fused]") {
  for (const Case& c : cases()) {
    DYNAMIC_SECTION(c.name) {
      Task expected(c, 5);
      double loss = 0;
      {
        const Plain plain;
        expected.to_double();
        loss = expected.forward_backward();
      }
      const auto samples = static_cast<std::int64_t>(c.lengths.size());
      CHECK(expected.stream == std::vector<std::int64_t>{samples, c.positions, 24});
      const auto check = [&] {
        Task found(c, 5);
        CHECK(found.forward_backward() == Approx(loss).epsilon(1e-6));
        check_gradients(found, expected, 2e-5);
        std::int64_t all = 0;
        for (const std::int64_t length : c.lengths) all += std::max<std::int64_t>(length, 1);
        const bool leaves_out = c.leaves_out && is_padded(c);
        CHECK(found.stream == (leaves_out ? std::vector<std::int64_t>{1, all, 24} : expected.stream));
        // What bfloat16 loses, the plain operations lose too.
        const Bf16Units units;
        Task low(c, 5);
        CHECK(low.forward_backward(true) == Approx(loss).epsilon(bf16_bound()));
        check_gradients(low, expected, bf16_bound());
      };
      check();
      {
        const LibTorchProducts products;
        check();
      }
    }
  }
}

TEST_CASE("what a head gives for padding that was left out is 0", "[model][fused]") {
  const Case& tags = cases()[5];
  Task task(tags, 5);
  const at::NoGradGuard no_grad;
  TensorMap left_out = task.batch(), padded = task.batch();
  task.model->set_training(false);
  task.model->forward(left_out);
  {
    const Plain plain;
    task.model->forward(padded);
  }
  const at::Tensor found = left_out.at(components::kOutput), expected = padded.at(components::kOutput);
  REQUIRE(found.sizes() == expected.sizes());
  const at::Tensor real = task.mask.unsqueeze(2);
  CHECK(found.masked_select(real.logical_not().expand_as(found)).abs().max().item<double>() == 0);
  CHECK((found - expected).masked_select(real.expand_as(found)).abs().max().item<double>() <= 1e-5);
}

TEST_CASE("blocks that are computed again have the same texts and the same masks", "[model][fused]") {
  using components::model::RecomputedBlocks;
  for (const std::size_t at : {std::size_t{7}, std::size_t{8}, std::size_t{13}}) {
    const Case& c = cases()[at];
    for (const RecomputedBlocks& part :
         {RecomputedBlocks{0, 2}, RecomputedBlocks{1, 3}, RecomputedBlocks{2, 1, true}}) {
      Task once(c, 5), again(c, 5);
      again.model->set_recomputed({part});
      at::manual_seed(11);
      const double loss = once.forward_backward();
      at::manual_seed(11);
      CHECK(again.forward_backward() == loss);
      check_same_bits(again, once);
    }
  }
}

TEST_CASE("the same texts give the same bits twice, with dropout", "[model][fused]") {
  for (const bool bf16 : {false, true}) {
    Task one(cases()[8], 5);
    const double loss = one.forward_backward(bf16);
    Task other(cases()[8], 5);
    CHECK(other.forward_backward(bf16) == loss);
    check_same_bits(one, other);
  }
}

TEST_CASE("frozen weights of an encoder get no gradient, and the others theirs", "[model][fused]") {
  for (const std::size_t at : {std::size_t{0}, std::size_t{8}, std::size_t{13}}) {
    Task all(cases()[at], 5);
    all.forward_backward();
    const auto expected = all.model->parameters();
    for (const std::size_t odd : {std::size_t{0}, std::size_t{1}}) {
      Task some(cases()[at], 5);
      const auto parameters = some.model->parameters();
      for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].tensor.set_requires_grad(i % 2 == odd);
      some.forward_backward();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        INFO(parameters[i].name);
        REQUIRE(parameters[i].tensor.grad().defined() == (i % 2 == odd));
        if (i % 2 == odd) CHECK(parameters[i].tensor.grad().equal(expected[i].tensor.grad()));
      }
    }
  }
}
