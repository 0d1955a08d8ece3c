// Every example of a data set and of a callback builds, from the folder that the tests run in: the project's own.

#include <catch2/catch.hpp>

#include "components/callback/callback.h"
#include "components/data/data.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"

using runner::core::Node;

TEST_CASE("every example of a data set and of a callback builds", "[examples][data][callback]") {
  const auto& registry = runner::registry::Registry::builtin();
  components::BatchSpec text;
  text.tensors = {{components::kInput, components::Dtype::kInt64, {components::kBatch, components::kTime}, false}};
  text.tensors[0].vocab_size = 256;
  text.tensors[0].max_length = 8;
  const std::vector<std::string> metrics{"loss", "val/loss"};
  for (const std::string kind : {"data", "callback"}) {
    for (const std::string& name : registry.names(kind)) {
      const auto* fragment = registry.find(kind, name);
      REQUIRE(fragment != nullptr);
      CHECK_FALSE(fragment->examples.empty());
      for (const Node& example : fragment->examples) {
        INFO(kind << "/" << name << ": " << to_json(example, -1));
        runner::core::Diagnostics problems;
        const Node block = runner::registry::validate_component(example, kind, kind, registry, problems);
        const bool built = kind == "data"
                               ? components::data::build(block, {"train", block, problems}) != nullptr
                               : components::callback::build(block, {block, problems, text, metrics}) != nullptr;
        INFO(runner::core::render(problems));
        CHECK(built);
        CHECK_FALSE(problems.has_errors());
      }
    }
  }
}
