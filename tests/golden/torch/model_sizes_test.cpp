// Sizes of models of Transformers against accelerate.utils.calculate_maximum_sizes of their classes, topic model_sizes.

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/engine/memory/measure.h"
#include "runner/pretrained/model_type.h"
#include "runner/pretrained/module_sizes.h"
#include "runner/recipe/compose.h"
#include "runner/resolve/load.h"
#include "tests/support/golden.h"

namespace {

using runner::core::Node;
namespace pretrained = runner::pretrained;

/// The head that the class of a configuration has.
std::string head_of(const tests::golden::Json& config) {
  const std::string architecture = config.at("architectures").at(0);
  const auto& type = *pretrained::find_model_type(config.at("model_type").get<std::string>());
  const auto at = std::find_if(type.heads.begin(), type.heads.end(),
                               [&](const pretrained::HeadName& one) { return one.architecture == architecture; });
  REQUIRE(at != type.heads.end());
  return at->name;
}

std::string loss_of(const std::string& head) {
  if (head == pretrained::kEmbedding) return "multiple_negatives";
  return head == pretrained::kQuestionAnswering ? "answer_span" : "cross_entropy";
}

pretrained::ModuleSizes sizes_of(const tests::golden::Json& config) {
  const std::string head = head_of(config);
  const auto source = std::make_shared<runner::core::Source>();
  source->name = "sizes";
  source->text =
      "model: {type: transformers, head: " + head + ", config: " + config.dump() + "}\nloss: " + loss_of(head) + "\n";
  runner::recipe::ComposeOptions options;
  options.use = runner::recipe::Use{};
  runner::core::Diagnostics diagnostics;
  const auto recipe =
      runner::resolve::load_recipe_text(source, options, runner::registry::Registry::builtin(), diagnostics);
  INFO(render(diagnostics));
  REQUIRE(recipe.has_value());
  const auto found = runner::engine::estimate_sizes(*recipe, {.trains = false}, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(found.has_value());
  std::vector<pretrained::TensorShape> tensors;
  for (const auto& tensor : found->tensors) tensors.push_back({tensor.name, tensor.shape});
  const auto& type = *pretrained::find_model_type(config.at("model_type").get<std::string>(), head);
  return module_sizes(type, *recipe->model.find("config"), tensors);
}

TEST_CASE("models have the sizes that Accelerate says of their classes", "[golden][sizes]") {
  tests::golden::Coverage coverage("model_sizes");
  for (const tests::GoldenCase& c : tests::golden::read_topic("model_sizes")) {
    CAPTURE(c.name);
    const pretrained::ModuleSizes sizes = sizes_of(c.input.at("config"));
    constexpr double kShare = 1e-3;
    CHECK(static_cast<double>(sizes.total) == Approx(c.expected.at("total").get<double>()).epsilon(kShare));
    CHECK(static_cast<double>(sizes.largest) == Approx(c.expected.at("largest_layer").get<double>()).epsilon(kShare));
    CHECK(static_cast<std::int64_t>(sizes.largest_names.size()) == c.expected.at("layers").get<std::int64_t>());
    CHECK(sizes.largest_names.front() == c.expected.at("first").get<std::string>());
    CHECK(sizes.parameters == c.expected.at("parameters").get<std::int64_t>());
    const auto adam = pretrained::sizes_in("float32", sizes).adam;
    REQUIRE(adam.has_value());
    CHECK(static_cast<double>(adam->most()) == Approx(c.expected.at("training").get<double>()).epsilon(kShare));
    coverage.checked(c.kind);
  }
  coverage.finish();
}

}  // namespace
