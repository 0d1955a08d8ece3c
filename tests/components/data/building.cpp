#include "tests/components/data/building.h"

#include <ATen/ATen.h>

#include <catch2/catch.hpp>

#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"

namespace tests {

BuiltData build_data(const std::string& text, const BuildData& options) {
  const runner::core::Node node = block("data", text);
  runner::core::Diagnostics diagnostics;
  components::data::Inputs inputs{options.name, node, diagnostics, options.header_only, options.train, options.seed};
  inputs.labels = options.labels;
  inputs.model_classes = options.model_classes;
  inputs.new_rows = options.new_rows;
  inputs.decoder = options.decoder;
  auto data = components::data::build(node, inputs);
  CHECK((data == nullptr) == diagnostics.has_errors());
  return {data, runner::core::render(diagnostics, {.color = false, .excerpts = false})};
}

std::shared_ptr<components::data::Dataset> good_data(const std::string& text, const BuildData& options) {
  BuiltData built = build_data(text, options);
  INFO(built.messages);
  for (const char* wrong : {": error: ", ": warning: "}) REQUIRE(built.messages.find(wrong) == std::string::npos);
  return built.data;
}

std::vector<double> fetched(const components::data::Dataset& data, const std::vector<std::int64_t>& indices,
                            const std::string& port) {
  components::TensorMap batch;
  data.fetch(indices, batch);
  const at::Tensor values = batch.at(port).to(at::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

}  // namespace tests
