#include "tests/support/torch/tensors_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <catch2/catch.hpp>
#include <map>

#include "tests/support/blocks.h"

namespace tests {
namespace {

std::vector<std::int64_t> shape_of(const golden::Json& json) {
  if (json.is_object()) return json.at("shape").get<std::vector<std::int64_t>>();
  std::vector<std::int64_t> shape;
  for (const golden::Json* level = &json; level->is_array(); level = &level->front()) {
    shape.push_back(static_cast<std::int64_t>(level->size()));
    if (level->empty()) break;
  }
  return shape;
}

}  // namespace

at::Tensor floats(const golden::Json& json) {
  const std::vector<double> row = golden::numbers(json);
  const std::vector<float> singles(row.begin(), row.end());
  return at::tensor(singles, at::kFloat).reshape(shape_of(json));
}

at::Tensor ids(const golden::Json& json) {
  const std::vector<double> row = golden::numbers(json);
  const std::vector<std::int64_t> whole(row.begin(), row.end());
  return at::tensor(whole, at::kLong).reshape(shape_of(json));
}

std::vector<double> to_numbers(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().to(at::kDouble).contiguous();
  const double* first = dense.const_data_ptr<double>();
  return {first, first + dense.numel()};
}

std::shared_ptr<components::model::Model> make_model(const std::string& text, const components::BatchSpec& data,
                                                     bool meta) {
  const runner::core::Node node = block("model", text);
  runner::core::Diagnostics diagnostics;
  components::part::DrawnWeights drawn;
  components::part::MetaWeights on_meta;
  auto model = components::model::build(
      node, {data, meta ? static_cast<components::part::WeightMaker&>(on_meta) : drawn, node, diagnostics});
  INFO(runner::core::render(diagnostics));
  REQUIRE(model != nullptr);
  REQUIRE_FALSE(diagnostics.has_errors());
  return model;
}

void set_parameters(const components::model::Model& model, const golden::Json& by_name) {
  const at::NoGradGuard no_grad;
  std::size_t given = 0;
  for (components::NamedTensor& parameter : model.parameters()) {
    INFO("parameter " << parameter.name);
    REQUIRE(by_name.contains(parameter.name));
    parameter.tensor.copy_(floats(by_name.at(parameter.name)).reshape(parameter.tensor.sizes()));
    ++given;
  }
  REQUIRE(given == by_name.size());
}

at::Tensor forward(const components::model::Model& model, const at::Tensor& input) {
  components::TensorMap activations;
  activations.set(components::kInput, input);
  model.forward(activations);
  return activations.at(components::kOutput);
}

components::TensorMap judged(const at::Tensor& output, const at::Tensor& target) {
  components::TensorMap tensors;
  tensors.set(components::kOutput, output);
  tensors.set(components::kTarget, target);
  return tensors;
}

void clear_gradients(const components::model::Model& model) {
  for (components::NamedTensor& parameter : model.parameters()) parameter.tensor.mutable_grad().reset();
}

components::BatchSpec text_data(std::int64_t vocab_size, std::int64_t max_seq_len) {
  using namespace components;
  BatchSpec data;
  data.tensors = {{kInput, Dtype::kInt64, {kBatch, kTime}, false}, {kTarget, Dtype::kInt64, {kBatch, kTime}, false}};
  for (TensorSpec& port : data.tensors) {
    port.vocab_size = vocab_size;
    port.max_length = max_seq_len;
  }
  return data;
}

components::BatchSpec class_data(std::int64_t features, std::int64_t classes) {
  using namespace components;
  BatchSpec data;
  data.tensors = {{kInput, Dtype::kFloat32, {kBatch, features}, false}, {kTarget, Dtype::kInt64, {kBatch}, false}};
  data.find(kTarget)->num_classes = classes;
  return data;
}

components::BatchSpec image_data(std::int64_t channels, std::int64_t height, std::int64_t width, std::int64_t classes) {
  components::BatchSpec data = class_data(1, classes);
  data.find(components::kInput)->shape = {components::kBatch, channels, height, width};
  return data;
}

components::BatchSpec value_data(std::int64_t features, std::int64_t targets) {
  using namespace components;
  BatchSpec data;
  data.tensors = {{kInput, Dtype::kFloat32, {kBatch, features}, false},
                  {kTarget, Dtype::kFloat32, {kBatch, targets}, false}};
  return data;
}

}  // namespace tests
