#include "runner/recipe/renamed_keys.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <memory>
#include <string>

#include "runner/core/json.h"
#include "runner/core/path.h"
#include "runner/core/platform/files.h"
#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"
#include "runner/resolve/changes.h"
#include "runner/resolve/recipe.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace runner::recipe {
namespace {

using core::Node;
using registry::Property;

const std::string kFixture = tests::source_dir() + "/tests/fixtures/format_1/";

/// The properties of a section, or of an object in one; null when there is none.
const std::vector<Property>* properties_of(std::string_view path) {
  const auto steps = core::parse_path(path).value();
  const registry::Fragment* section = registry::Registry::builtin().find("section", steps.front().key);
  const std::vector<Property>* properties = section != nullptr ? &section->properties : nullptr;
  for (std::size_t i = 1; i < steps.size() && properties != nullptr; ++i) {
    const auto at = std::find_if(properties->begin(), properties->end(),
                                 [&](const Property& property) { return property.name == steps[i].key; });
    properties = at != properties->end() ? &at->properties : nullptr;
  }
  return properties;
}

std::string renamed(const std::string& json) {
  Node recipe = core::parse_json(json).value();
  rename_keys(recipe);
  return core::to_json(recipe, -1);
}

/// The recipe in one line, with what was said about it before.
std::string composed(const std::string& path, const ComposeOptions& options = {}) {
  core::Diagnostics diagnostics;
  const auto composed = compose(path, options, diagnostics);
  std::string text;
  for (const core::Diagnostic& one : diagnostics.all()) text += one.message + "\n";
  return text + (composed ? core::to_json(composed->root, -1) : "");
}

}  // namespace

TEST_CASE("a renamed key is in its fragment, with the old word as an alias", "[recipe][renamed]") {
  for (const RenamedKey& key : renamed_keys()) {
    INFO(key.section << "." << key.old_name);
    const std::vector<Property>* properties = properties_of(key.section);
    REQUIRE(properties != nullptr);
    const auto at = std::find_if(properties->begin(), properties->end(),
                                 [&](const Property& property) { return property.name == key.new_name; });
    REQUIRE(at != properties->end());
    CHECK(std::count(at->aliases.begin(), at->aliases.end(), key.old_name) == 1);
  }
}

TEST_CASE("old words of a recipe are renamed in their place", "[recipe][renamed]") {
  CHECK(renamed(R"({"loader": {"shuffle": true, "pad_in_loss": false, "seed": 1}})") ==
        R"({"loader": {"shuffle": true, "count_repeated_samples": false, "seed": 1}})");
  CHECK(renamed(R"({"sweep": {"failures": {"recipe": "stop"}, "population": {"size": 4, "replaced": 0.5}}})") ==
        R"({"sweep": {"failures": {"invalid_recipe": "stop"}, "population": {"size": 4, "quantile_fraction": 0.5}}})");
  CHECK(renamed(R"({"sweep": {"population": null}, "loader": {}})") ==
        R"({"sweep": {"population": null}, "loader": {}})");
  CHECK(renamed(R"({"vars": {"pad_in_loss": 1}})") == R"({"vars": {"pad_in_loss": 1}})");
  CHECK(renamed("null") == "null");
  // In the paths of a sweep.
  CHECK(
      renamed(
          R"({"sweep": {"parameters": {"loader.pad_in_loss": {"values": [true], "when": "loader.pad_in_loss"}}}})") ==
      R"({"sweep": {"parameters": {"loader.count_repeated_samples": {"values": [true], "when": "loader.count_repeated_samples"}}}})");
  CHECK(renamed(R"({"sweep": {"paired": [{"loader.pad_in_loss": true, "seed": 1}]}})") ==
        R"({"sweep": {"paired": [{"loader.count_repeated_samples": true, "seed": 1}]}})");
  CHECK(renamed(R"({"sweep": {"constraints": ["not loader.pad_in_loss or my.loader.pad_in_loss > 1"]}})") ==
        R"({"sweep": {"constraints": ["not loader.count_repeated_samples or my.loader.pad_in_loss > 1"]}})");
}

TEST_CASE("a path has its new word, and finds its old one", "[recipe][renamed]") {
  CHECK(renamed_path("loader.pad_in_loss") == "loader.count_repeated_samples");
  CHECK(renamed_path("sweep.failures.recipe") == "sweep.failures.invalid_recipe");
  CHECK(renamed_path("sweep.failures.recipes") == "sweep.failures.recipes");
  CHECK(renamed_path("optimizer.lr") == "optimizer.lr");
  CHECK(former_path("loader.count_repeated_samples") == "loader.pad_in_loss");
  CHECK(former_path("optimizer.lr").empty());
  CHECK(renamed_text("optimizer.lr=1e-3 loader.pad_in_loss=true") ==
        "optimizer.lr=1e-3 loader.count_repeated_samples=true");
}

TEST_CASE("a recipe with old words extends, is extended and overridden, with a notice", "[recipe][renamed]") {
  const tests::TempDir dir;
  const auto write = [&](const char* name, const char* text) { std::ofstream(dir / name) << text; };
  const std::string notice = "loader.pad_in_loss is read as loader.count_repeated_samples\n";
  const std::string yes = R"({"loader": {"count_repeated_samples": true}})";
  const std::string no = R"({"loader": {"count_repeated_samples": false}})";
  write("old.yaml", "loader: {pad_in_loss: true}\n");
  write("new.yaml", "loader: {count_repeated_samples: true}\n");
  write("resolved.json", R"({"loader": {"pad_in_loss": true}})");
  CHECK(composed(dir / "old.yaml") == notice + yes);
  CHECK(composed(dir / "resolved.json") == yes);  // cannot be edited

  write("child.yaml", "extends: old.yaml\nloader: {count_repeated_samples: false}\n");
  CHECK(composed(dir / "child.yaml") == notice + no);
  write("child.yaml", "extends: resolved.json\nloader: {count_repeated_samples: false}\n");
  CHECK(composed(dir / "child.yaml") == no);
  write("child.yaml", "extends: new.yaml\nloader: {pad_in_loss: false}\n");
  CHECK(composed(dir / "child.yaml") == notice + no);

  ComposeOptions set, take;
  set.overrides = {{Override::Kind::kSet, "loader.pad_in_loss=false"}};
  CHECK(composed(dir / "new.yaml", set) == notice + no);
  take.overrides = {{Override::Kind::kSet, "~loader.pad_in_loss"}};
  CHECK(composed(dir / "new.yaml", take) == notice + R"({"loader": {}})");

  write("refers.yaml", "loader: {count_repeated_samples: true}\nvars: {pads: \"${loader.pad_in_loss}\"}\n");
  CHECK(composed(dir / "refers.yaml") == R"({"loader": {"count_repeated_samples": true}, "vars": {"pads": true}})");
  // Validation names both.
  write("both.yaml", "loader: {pad_in_loss: true, count_repeated_samples: true}\n");
  CHECK(composed(dir / "both.yaml") == R"({"loader": {"pad_in_loss": true, "count_repeated_samples": true}})");
}

TEST_CASE("a run that was recorded with old words has the recipe of today", "[recipe][renamed]") {
  const Node runs = core::parse_json(core::read_file(kFixture + "expected.json", 1 << 20).value()).value();
  for (const char* name : {"adamw-ema", "finished-a"}) {
    INFO(name);
    const Node& run = *runs.at_path("runs")->find(name);
    const std::string folder = kFixture + "place/runs/" + name + "-" + run.find("id")->as_string();
    REQUIRE(core::read_file(folder + "/resolved.json", 1 << 20).value().find("pad_in_loss") != std::string::npos);
    resolve::Recipe recorded;
    recorded.root = resolve::read_recorded_recipe(folder, folder + "/resolved.json").value();
    CHECK(recorded.at("loader.count_repeated_samples").as_bool() == false);
    CHECK(recorded.root.at_path("loader.pad_in_loss") == nullptr);
  }
}

}  // namespace runner::recipe
