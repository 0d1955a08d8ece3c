#include "runner/resolve/hub_values.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "tests/support/folder.h"
#include "tests/support/process/variables.h"

namespace {

namespace fs = std::filesystem;

using runner::core::Diagnostics;
using runner::core::Node;
using runner::resolve::Recipe;

const std::string kCommit(40, 'c');
constexpr const char* kConfig =
    R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32})";
constexpr const char* kRest = "optimizer: {type: adamw, lr: 0.1}\ntraining: {max_steps: 1, micro_batch_size: 1}\n";

/// A cache with the configuration of one model and a file of a data set.
struct Here {
  Here() {
    const fs::path model = fs::path("cache") / "models--ada--tiny", data = fs::path("cache") / "datasets--ada--words";
    folder.write((model / "refs/main").string(), kCommit);
    folder.write((model / "snapshots" / kCommit / "config.json").string(), kConfig);
    folder.write((model / "snapshots" / kCommit / "tokenizer.json").string(), "{}");
    folder.write((data / "refs/main").string(), kCommit);
    folder.write((data / "snapshots" / kCommit / "a.jsonl").string(), "{}\n");
  }
  std::optional<Recipe> load(const std::string& text, Diagnostics& diagnostics) const {
    auto source = std::make_shared<runner::core::Source>(
        runner::core::Source{"r.yaml", text + kRest, runner::core::Source::Kind::kFile});
    return runner::resolve::load_recipe_text(source, {}, runner::registry::Registry::builtin(), diagnostics);
  }
  std::string errors_of(const std::string& text) const {
    Diagnostics diagnostics;
    load(text, diagnostics);
    std::string errors;
    for (const auto& one : diagnostics.all()) {
      if (one.severity == runner::core::Severity::kError) errors += one.message + " | " + one.hint + "\n";
    }
    return errors;
  }

  tests::Folder folder;
  tests::Variables variables{tests::Variables::Values{{"HF_HUB_CACHE", "cache"}}};
};

constexpr const char* kNamed = R"(
init_from: hf://ada/tiny
data: {train: {type: jsonl, path: [hf://datasets/ada/words/a.jsonl, b.jsonl]}}
)";

}  // namespace

TEST_CASE("names of the Hub become paths of its cache, and are recorded with their commit", "[hub][resolve]") {
  const Here here;
  Diagnostics diagnostics;
  const auto recipe = here.load(kNamed, diagnostics);
  REQUIRE(recipe);
  const std::string snapshot = "cache/models--ada--tiny/snapshots/" + kCommit;
  CHECK(recipe->at("init_from.path").as_string() == snapshot);
  CHECK(recipe->at("tokenizer.path").as_string() == snapshot);  // the folder has one
  CHECK(recipe->at("data.train.path[0]").as_string() == "cache/datasets--ada--words/snapshots/" + kCommit + "/a.jsonl");
  const Node resolved = recipe->resolved();
  CHECK(resolved.at_path("init_from.path")->as_string() == "hf://ada/tiny@" + kCommit);
  CHECK(resolved.at_path("tokenizer.path")->as_string() == "hf://ada/tiny@" + kCommit);
  CHECK(resolved.at_path("data.train.path[0]")->as_string() == "hf://datasets/ada/words@" + kCommit + "/a.jsonl");
  CHECK(resolved.at_path("data.train.path[1]")->as_string() == "b.jsonl");
}

TEST_CASE("a recorded recipe means the same on a machine with another cache", "[hub][resolve]") {
  const Here here;
  Diagnostics diagnostics;
  const auto recipe = here.load(kNamed, diagnostics);
  REQUIRE(recipe);
  here.folder.write("resolved.json", recipe->resolved_json());
  fs::rename("cache", "elsewhere");
  fs::remove("elsewhere/models--ada--tiny/refs/main");  // the commit is in the recipe
  setenv("HF_HUB_CACHE", "elsewhere", 1);
  const auto again =
      runner::resolve::load_recipe("resolved.json", {}, runner::registry::Registry::builtin(), diagnostics);
  REQUIRE(again);
  CHECK(again->at("init_from.path").as_string() == "elsewhere/models--ada--tiny/snapshots/" + kCommit);
  CHECK(again->hash() == recipe->hash());
  CHECK(again->resolved_json() == recipe->resolved_json());
}

TEST_CASE("what is wrong with a name of the Hub is reported alone", "[hub][resolve]") {
  struct Case {
    const char *recipe, *errors;
  };
  static constexpr Case cases[] = {
      {"init_from: hf://ada/other\ndata: {train: {type: ids, path: a.jsonl}}\n",
       "init_from gives the model, and hf://ada/other is not in the cache of the Hugging Face Hub | `roux fetch` with "
       "this recipe downloads it; or write the model\n"},
      {"init_from: hf://tiny\ndata: {train: {type: ids, path: a.jsonl}}\n",
       "\"hf://tiny\" names nothing on the Hugging Face Hub: the owner of the repository is not in it | write "
       "hf://OWNER/NAME, hf://OWNER/NAME/FILE or hf://datasets/OWNER/NAME/FILE; @REVISION may follow NAME\n"},
      {"init_from: hf://datasets/ada/words\ndata: {train: {type: ids, path: a.jsonl}}\n",
       "hf://datasets/ada/words is a data set of the Hub, not a model | write hf://OWNER/NAME\n"},
      {"init_from: hf://ada/tiny\ndata: {train: {type: ids, path: hf://ada/words}}\n",
       "a data set reads files, and hf://ada/words names a model | write hf://datasets/OWNER/NAME, or name a file of "
       "it: "
       "hf://ada/words/FILE\n"},
  };
  const Here here;
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.recipe) { CHECK(here.errors_of(c.recipe) == c.errors); }
  }
}
