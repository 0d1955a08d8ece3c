// Documents packed into rows against the same documents alone: logits, and gradients of every parameter.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "components/ops/kernel_policy.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using components::kInput;
using components::kPositions;
using components::NamedTensor;
using components::TensorMap;
using components::model::Model;

constexpr std::int64_t kLength = 16, kVocabulary = 23;

/// The plain operations while it lives, if they are wanted.
struct Kernels {
  explicit Kernels(bool fused) { components::set_fused_kernels(fused); }
  ~Kernels() { components::set_fused_kernels(true); }
};

components::BatchSpec packed_data() {
  components::BatchSpec data = tests::text_data(kVocabulary, kLength);
  components::TensorSpec positions{
      kPositions, components::Dtype::kInt64, {components::kBatch, components::kTime}, false};
  positions.max_length = kLength;
  data.tensors.push_back(positions);
  return data;
}

at::Tensor logits(const Model& model, const at::Tensor& ids_BT, const at::Tensor& positions_BT) {
  TensorMap activations;
  activations.set(kInput, ids_BT);
  activations.set(kPositions, positions_BT);
  model.forward(activations);
  return activations.at(components::kOutput);
}

at::Tensor count(std::int64_t length) { return at::arange(length, at::kLong); }

std::vector<at::Tensor> taken_gradients(const Model& model) {
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& parameter : model.parameters()) gradients.push_back(parameter.tensor.grad().to_dense());
  tests::clear_gradients(model);
  return gradients;
}

/// Lengths of the documents of each row; what is left of a row is padding.
const std::vector<std::vector<std::int64_t>> kRows = {{5, 1, 9}, {16}, {7, 7}, {3, 2, 1, 10}};

void compare(const std::string& text) {
  at::manual_seed(3);
  const std::shared_ptr<Model> model = tests::make_model(text, packed_data());
  {
    const at::NoGradGuard no_grad;
    for (const NamedTensor& parameter : model->parameters()) {
      parameter.tensor.add_(at::randn(parameter.tensor.sizes()).mul_(0.1));
    }
  }
  const auto rows = static_cast<std::int64_t>(kRows.size());
  const at::Tensor ids = at::randint(kVocabulary, {rows, kLength}, at::kLong);
  const at::Tensor wanted = at::randn({rows, kLength, kVocabulary});  // the gradient of each logit
  const at::Tensor positions = at::zeros({rows, kLength}, at::kLong);
  const at::Tensor is_real = at::zeros({rows, kLength, 1});
  std::vector<at::Tensor> alone;
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = 0;
    for (const std::int64_t length : kRows[static_cast<std::size_t>(row)]) {
      const at::Tensor one = ids[row].narrow(0, at, length).unsqueeze(0);
      const at::Tensor out = logits(*model, one, count(length).unsqueeze(0));
      const at::Tensor loss = (out * wanted[row].narrow(0, at, length)).sum();
      loss.backward();
      sum += loss.item<double>();
      alone.push_back(out.detach().squeeze(0));
      positions[row].narrow(0, at, length).copy_(count(length));
      is_real[row].narrow(0, at, length).fill_(1);
      at += length;
    }
    if (at == kLength) continue;
    const std::int64_t last = positions[row][at - 1].item<std::int64_t>();
    positions[row].narrow(0, at, kLength - at).copy_(count(kLength - at) + (last + 1));
  }
  const std::vector<at::Tensor> expected = taken_gradients(*model);
  const at::Tensor packed = logits(*model, ids, positions);
  std::size_t document = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = 0;
    for (const std::int64_t length : kRows[static_cast<std::size_t>(row)]) {
      const at::Tensor mine = packed[row].narrow(0, at, length).detach();
      CHECK((mine - alone[document++]).abs().max().item<double>() < 1e-5);
      at += length;
    }
  }
  const at::Tensor loss = (packed * wanted * is_real).sum();
  loss.backward();
  CHECK(loss.item<double>() == Approx(sum).epsilon(1e-5));
  const std::vector<at::Tensor> gradients = taken_gradients(*model);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    INFO(model->parameters()[i].name);
    const double largest = expected[i].abs().max().item<double>();
    CHECK((gradients[i] - expected[i]).abs().max().item<double>() < 1e-5 * (1 + largest));
  }
}

}  // namespace

TEST_CASE("documents of a packed row are what they are alone", "[model][packing]") {
  const char* const models[] = {
      "{type: gpt, n_layer: 2, n_head: 2, n_embd: 32}",
      "{type: gpt, n_layer: 2, n_head: 4, n_embd: 32, positions: rotary}",
      "{type: llama, n_layer: 2, n_head: 4, n_kv_head: 2, n_embd: 32}",
      "{type: llama, n_layer: 2, n_head: 2, n_embd: 16, sliding_window: 4}",
      "{type: llama, n_layer: 1, n_head: 3, n_kv_head: 1, n_embd: 24, attention_bias: all, tie_embeddings: true}",
      "{type: transformers, config: {model_type: mixtral, hidden_size: 24, intermediate_size: 16, num_hidden_layers: "
      "2, "
      "num_attention_heads: 2, num_key_value_heads: 1, num_local_experts: 4, sliding_window: 4, vocab_size: 23}}",
  };
  for (const bool fused : {true, false}) {
    const Kernels kernels(fused);
    for (const char* model : models) {
      INFO(model << (fused ? ", fused" : ", plain"));
      compare(model);
    }
  }
}

TEST_CASE("a model reads positions where the data have them", "[model][packing]") {
  const auto reads = [](const std::string& text, const components::BatchSpec& data) {
    return components::find_spec(tests::make_model(text, data)->inputs(), kPositions) != nullptr;
  };
  CHECK(reads("{type: gpt, n_layer: 1, n_head: 1, n_embd: 8}", packed_data()));
  CHECK(reads("{type: llama, n_layer: 1, n_head: 1, n_embd: 8}", packed_data()));
  CHECK_FALSE(reads("{type: gpt, n_layer: 1, n_head: 1, n_embd: 8}", tests::text_data(kVocabulary, kLength)));
}
