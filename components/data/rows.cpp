#include "components/data/rows.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "components/data/text_utils.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

// B: samples of the batch   F: inputs   O: targets   N: samples of the set

namespace components::data {
namespace {

/// Copies rows of `width` values; faster than a tensor operation for each batch of small rows.
template <typename T>
void gather(const std::vector<T>& rows, std::int64_t width, std::span<const std::int64_t> indices, T* to) {
  for (const std::int64_t index : indices) to = std::copy_n(rows.data() + index * width, width, to);
}

}  // namespace

// From the signature, as there are no rows yet under `header_only`.
std::int64_t Rows::memory_bytes() const {
  double sample = 0;
  for (const TensorSpec& port : signature_.tensors) {
    sample += static_cast<double>(element_size(port.dtype)) * elements(port, 1);
  }
  return static_cast<std::int64_t>(sample * static_cast<double>(content_.size));
}

Rows::Rows(BatchSpec signature, Content content, std::string description)
    : signature_(std::move(signature)), content_(std::move(content)), description_(std::move(description)) {}

void Rows::fetch(std::span<const std::int64_t> indices, TensorMap& batch) const {
  for (const std::int64_t index : indices) {
    RUNNER_ASSERT(index >= 0 && index < content_.size, "the sampler keeps to the data set");
  }
  const auto samples = static_cast<std::int64_t>(indices.size());
  const std::int64_t in_features = signature_.at(kInput).shape[1];
  at::Tensor input_BF = at::empty({samples, in_features}, at::kFloat);
  gather(content_.inputs, in_features, indices, input_BF.mutable_data_ptr<float>());
  batch.set(kInput, std::move(input_BF));
  if (signature_.at(kTarget).num_classes > 0) {
    at::Tensor target_B = at::empty({samples}, at::kLong);
    gather(content_.classes, 1, indices, target_B.mutable_data_ptr<std::int64_t>());
    batch.set(kTarget, std::move(target_B));
  } else {
    const std::int64_t out_features = signature_.at(kTarget).shape[1];
    at::Tensor target_BO = at::empty({samples, out_features}, at::kFloat);
    gather(content_.values, out_features, indices, target_BO.mutable_data_ptr<float>());
    batch.set(kTarget, std::move(target_BO));
  }
}

std::span<const float> Rows::inputs_of(std::int64_t index) const {
  RUNNER_ASSERT(index >= 0 && index < content_.size, "the sampler keeps to the data set");
  const auto width = static_cast<std::size_t>(signature_.at(kInput).shape[1]);
  return std::span(content_.inputs).subspan(static_cast<std::size_t>(index) * width, width);
}

std::vector<std::pair<std::string, runner::core::Node>> Rows::columns_of(std::int64_t index) const {
  constexpr std::size_t kReadable = 16;
  const std::span<const float> inputs = inputs_of(index);
  std::vector<std::pair<std::string, runner::core::Node>> columns;
  if (inputs.size() > kReadable) return columns;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    columns.emplace_back("input " + std::to_string(i + 1), runner::core::Node::floating(as_written(inputs[i])));
  }
  return columns;
}

BatchSpec Rows::regression_signature(std::int64_t in_features, std::int64_t out_features) {
  BatchSpec signature;
  signature.tensors = {{kInput, Dtype::kFloat32, {kBatch, in_features}, false},
                       {kTarget, Dtype::kFloat32, {kBatch, out_features}, false}};
  return signature;
}

BatchSpec Rows::classification_signature(std::int64_t in_features, std::int64_t num_classes) {
  BatchSpec signature;
  signature.tensors = {{kInput, Dtype::kFloat32, {kBatch, in_features}, false},
                       {kTarget, Dtype::kInt64, {kBatch}, false}};
  signature.find(kTarget)->num_classes = num_classes;
  return signature;
}

}  // namespace components::data
