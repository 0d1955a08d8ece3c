#include "runner/resolve/pretrained_model.h"

#include <catch2/catch.hpp>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "tests/support/paths.h"

using runner::core::Node;

// What is added moves the recipe's nodes, at a size that depends on the number of keys.
TEST_CASE("a folder gives model and loss, however many keys the recipe has", "[resolve][pretrained]") {
  const std::string folder = tests::source_dir() + "/tests/parity/models/llama-grouped";
  for (int keys = 0; keys < 40; ++keys) {
    INFO(keys << " other keys");
    Node recipe = Node::mapping();
    recipe.set("init_from", Node::string(folder, {nullptr, 3, 12, 1}));
    for (int i = 0; i < keys; ++i) recipe.set("key" + std::to_string(i), Node::integer(i));
    runner::core::Diagnostics diagnostics;
    runner::resolve::complete_pretrained(recipe, diagnostics);
    CHECK_FALSE(diagnostics.has_errors());
    REQUIRE(recipe.find("model") != nullptr);
    CHECK(recipe.at_path("model.type")->as_string() == "transformers");
    CHECK(recipe.at_path("model.config.model_type")->as_string() == "llama");
    REQUIRE(recipe.find("loss") != nullptr);
    CHECK(recipe.find("loss")->as_string() == "cross_entropy");
    for (const char* key : {"model", "loss"}) CHECK(recipe.find(key)->location().line == 3);
  }
}
