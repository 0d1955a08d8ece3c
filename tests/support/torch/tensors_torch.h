#pragma once

#include <string>
#include <vector>

#include "components/model/model.h"
#include "components/tensor/tensor_spec.h"
#include "components/tensor/tensors.h"
#include "tests/support/golden.h"

namespace tests {

/// Nested lists of numbers, or `{shape, data}`, as a float32 tensor; ids as an int64 one.
at::Tensor floats(const golden::Json& json);
at::Tensor ids(const golden::Json& json);
std::vector<double> to_numbers(const at::Tensor& tensor);

/// A model of recipe text for a data signature; fails the test with the diagnostics when it cannot be built.
std::shared_ptr<components::model::Model> make_model(const std::string& text, const components::BatchSpec& data,
                                                     bool meta = false);
/// Sets parameters by name; fails the test when a name is not the model's, or one of the model's is not given.
void set_parameters(const components::model::Model& model, const golden::Json& by_name);
/// The model's output for an input.
at::Tensor forward(const components::model::Model& model, const at::Tensor& input);
/// What a loss or a metric reads.
components::TensorMap judged(const at::Tensor& output, const at::Tensor& target);
void clear_gradients(const components::model::Model& model);

/// What the data sets of these kinds say of themselves.
components::BatchSpec text_data(std::int64_t vocab_size, std::int64_t max_seq_len);
components::BatchSpec class_data(std::int64_t features, std::int64_t classes);
components::BatchSpec image_data(std::int64_t channels, std::int64_t height, std::int64_t width, std::int64_t classes);
components::BatchSpec value_data(std::int64_t features, std::int64_t targets);

}  // namespace tests
