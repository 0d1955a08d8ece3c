#include "runner/resolve/pretrained_model.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <utility>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

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

// Transformers 5 says of every T5 that its head is tied, and its files alone tell which is.
TEST_CASE("a head of a T5 1.1 is tied unless the folder has one", "[resolve][pretrained]") {
  struct Case {
    const char* weights;
    bool tied;
  };
  const std::string models = tests::source_dir() + "/tests/parity/models/";
  for (const auto& [weights, tied] : {Case{"t5-unscaled", true}, Case{"t5-gated", false}}) {
    const tests::TempDir folder;
    for (const auto& [from, file] :
         {std::pair("t5-unscaled", "/config.json"), std::pair(weights, "/model.safetensors")}) {
      std::filesystem::copy_file(models + from + file, folder.path() + file);
    }
    Node recipe = Node::mapping();
    recipe.set("init_from", Node::string(folder.path()));
    runner::core::Diagnostics diagnostics;
    runner::resolve::complete_pretrained(recipe, diagnostics);
    CHECK_FALSE(diagnostics.has_errors());
    REQUIRE(recipe.find("model") != nullptr);
    CHECK(recipe.at_path("model.config.tie_word_embeddings")->as_bool() == tied);
    CHECK_FALSE(recipe.at_path("model.config.scale_decoder_outputs")->as_bool());
  }
}

TEST_CASE("records are cut to the model's context length unless the recipe says another", "[resolve][pretrained]") {
  const std::string folder = tests::source_dir() + "/tests/parity/models/llama-grouped";
  const auto set_of = [](const char* type, const char* key) {
    Node set = Node::mapping();
    set.set("type", Node::string(type));
    if (key != nullptr) set.set(key, Node::integer(7));
    return set;
  };
  Node recipe = Node::mapping(), data = Node::mapping();
  data.set("train", set_of("jsonl", nullptr));
  data.set("val", set_of("jsonl", "max_seq_len"));
  data.set("test", set_of("jsonl", "max_length"));
  data.set("other", set_of("ids", nullptr));
  recipe.set("init_from", Node::string(folder));
  recipe.set("data", std::move(data));
  runner::core::Diagnostics diagnostics;
  runner::resolve::complete_pretrained(recipe, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(recipe.at_path("data.train.max_seq_len")->as_integer() ==
        recipe.at_path("model.config.max_position_embeddings")->as_integer());
  CHECK(recipe.at_path("data.val.max_seq_len")->as_integer() == 7);
  CHECK(recipe.at_path("data.test.max_seq_len") == nullptr);
  CHECK(recipe.at_path("data.other.max_seq_len") == nullptr);
}
