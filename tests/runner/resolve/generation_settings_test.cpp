#include "runner/resolve/generation_settings.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "generated/section/generation.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/platform/files.h"
#include "runner/registry/alias.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace {

using runner::core::Diagnostics;
using runner::core::Severity;
using runner::registry::Registry;
using runner::resolve::Recipe;

/// A Transformers folder with these files beside the configuration of a small model.
class Folder {
 public:
  explicit Folder(const std::string& generation) {
    std::filesystem::copy_file(tests::source_dir() + "/tests/parity/models/llama-grouped/config.json",
                               path() + "/config.json");
    if (!generation.empty()) runner::core::write_file_atomic(path() + "/generation_config.json", generation).value();
  }

  const std::string& path() const { return dir_.path(); }

  /// The recipe with this section; nothing when there were errors.
  std::optional<Recipe> load(const std::string& section, Diagnostics& diagnostics) const {
    auto source = std::make_shared<runner::core::Source>();
    source->name = "r.yaml";
    source->text = "init_from: {path: " + path() +
                   "}\n"
                   "data: {train: {type: synthetic, num_samples: 1}}\n"
                   "optimizer: {type: sgd, lr: 1.0}\n"
                   "training: {max_steps: 1, micro_batch_size: 1}\n" +
                   section;
    return runner::resolve::load_recipe_text(source, {}, Registry::builtin(), diagnostics);
  }

 private:
  tests::TempDir dir_;
};

int warnings(const Diagnostics& diagnostics) {
  int count = 0;
  for (const auto& diagnostic : diagnostics.all()) count += diagnostic.severity == Severity::kWarning ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("the folder's generation_config.json comes after the recipe and before the defaults",
          "[resolve][generation]") {
  const Folder folder(R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": null, "use_cache": true,
                          "cache_implementation": "static", "num_beam_groups": 1, "bos_token_id": 1,
                          "eos_token_id": [2, 5], "transformers_version": "4.40.0"})");
  Diagnostics diagnostics;
  const auto recipe = folder.load("generation: {temperature: 0.5}\n", diagnostics);
  REQUIRE(recipe);
  CHECK(warnings(diagnostics) == 0);
  CHECK(recipe->generation->do_sample);
  CHECK(recipe->generation->temperature == 0.5);  // of the recipe
  CHECK(recipe->generation->top_p == 0.9);        // of the folder
  CHECK(recipe->generation->top_k == 50);         // null there
  CHECK(recipe->generation->max_new_tokens == 256);
  CHECK(recipe->generation->eos_token_id == std::vector<std::int64_t>{2, 5});
  const auto& top_p = recipe->at("generation.top_p");
  CHECK(top_p.location().source->name.ends_with("generation_config.json"));
  CHECK(top_p.location().line == 1);
  REQUIRE_FALSE(top_p.history().empty());
  CHECK(top_p.history().front().text == "init_from");
}

TEST_CASE("a folder for summaries says how its texts are searched", "[resolve][generation]") {
  const Folder folder(R"({"num_beams": 4, "length_penalty": 2, "early_stopping": true, "no_repeat_ngram_size": 3,
                          "min_new_tokens": 5, "num_return_sequences": 2})");
  Diagnostics diagnostics;
  const auto recipe = folder.load("generation: {no_repeat_ngram_size: 2}\n", diagnostics);
  REQUIRE(recipe);
  CHECK(diagnostics.all().empty());
  CHECK(recipe->generation->num_beams == 4);
  CHECK(recipe->generation->length_penalty == 2.0);
  CHECK(recipe->generation->early_stopping == runner::sections::generation::EarlyStopping::kTrue);
  CHECK(recipe->generation->no_repeat_ngram_size == 2);  // of the recipe
  CHECK(recipe->generation->min_new_tokens == 5);
  CHECK(recipe->generation->num_return_sequences == 2);
  const auto never = folder.load("generation: {early_stopping: never}\n", diagnostics);
  REQUIRE(never);
  CHECK(never->generation->early_stopping == runner::sections::generation::EarlyStopping::kNever);
  CHECK_FALSE(folder.load("generation: {early_stopping: always}\n", diagnostics));
  CHECK_FALSE(folder.load("generation: {num_return_sequences: 5}\n", diagnostics));
}

TEST_CASE("a recipe without the section stays as it is", "[resolve][generation]") {
  const Folder folder(R"({"do_sample": true, "temperature": "hot", "top_h": 4})");
  Diagnostics diagnostics;
  const auto recipe = folder.load("", diagnostics);
  REQUIRE(recipe);
  CHECK(diagnostics.all().empty());
  CHECK_FALSE(recipe->generation);
  CHECK(recipe->at("generation").is_null());
  const auto written = folder.load("generation: {max_new_tokens: 3}\n", diagnostics);
  CHECK_FALSE(written);  // temperature is a text
}

TEST_CASE("the section leaves the hash of a recipe", "[resolve][generation]") {
  const Folder folder("{\"do_sample\": true}");
  Diagnostics diagnostics;
  const auto without = folder.load("", diagnostics), with = folder.load("generation: {top_k: 3}\n", diagnostics);
  REQUIRE(without);
  REQUIRE(with);
  CHECK(without->hash() == with->hash());
}

TEST_CASE("settings that roux does not have are warned of where they act", "[resolve][generation]") {
  const Folder folder(R"({"num_beam_groups": 4, "encoder_no_repeat_ngram_size": 3, "typical_p": 1.0,
                          "epsilon_cutoff": 0.0, "penalty_alpha": 0.6, "suppress_tokens": [], "bad_words_ids": [[3]],
                          "guidance_scale": null, "low_memory": false})");
  Diagnostics diagnostics;
  REQUIRE(folder.load("generation: {}\n", diagnostics));
  CHECK(warnings(diagnostics) == 4);
}

TEST_CASE("without generation_config.json the end tokens are those of config.json", "[resolve][generation]") {
  const Folder folder("");
  Diagnostics diagnostics;
  const auto recipe = folder.load("generation: {}\n", diagnostics);
  REQUIRE(recipe);
  CHECK(recipe->generation->eos_token_id == std::vector<std::int64_t>{2});
  CHECK_FALSE(recipe->generation->do_sample);
}

TEST_CASE("a damaged generation_config.json is an error at its place", "[resolve][generation]") {
  for (const char* text : {"{", "[1]", "{\"top_p\": 2}", "{\"stop_strings\": true}", "{\"eos_token_id\": [\"a\"]}"}) {
    CAPTURE(text);
    const Folder folder(text);
    Diagnostics diagnostics;
    CHECK_FALSE(folder.load("generation: {}\n", diagnostics));
    REQUIRE(diagnostics.error_count() == 1);
    CHECK(diagnostics.all().front().location.source->name.ends_with("generation_config.json"));
  }
}

TEST_CASE("what is warned of in a file is refused in a recipe, with a remedy", "[resolve][generation]") {
  Diagnostics diagnostics;
  const auto table = runner::registry::parse_aliases(Registry::builtin().aliases_json(), diagnostics);
  for (const std::string& name : runner::resolve::settings_without_effect()) {
    CAPTURE(name);
    CHECK(table.find_foreign("generation", name) != nullptr);
    CHECK(Registry::builtin().find("section", "generation")->find(name) == nullptr);
  }
}
