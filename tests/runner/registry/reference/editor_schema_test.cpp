#include "runner/registry/reference/editor_schema.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using nlohmann::json;
using runner::registry::Registry;

// tests/verify/editor_schema.py checks recipes against it with an independent validator; here is what an editor shows.

TEST_CASE("the editors' schema describes the recipe", "[registry][editor_schema]") {
  const std::string text = runner::registry::editor_schema(Registry::builtin());
  CHECK(text == runner::registry::editor_schema(Registry::builtin()));
  const json schema = json::parse(text);
  const json& seed = schema.at("properties").at("seed");
  CHECK(seed.at("default") == 1337);
  CHECK(seed.at("type") == json::array({"integer", "string"}));
  CHECK(seed.at("pattern") == "\\$\\{");  // a reference may stand for any value
  const json& steps = schema.at("properties").at("logging_steps");
  CHECK(steps.at("description") ==
        "Interval at which training metrics are recorded and shown. Unset: each of the first 50 steps, then every "
        "tenth.\n\n"
        "Unit: optimizer steps.");
  const json& name = schema.at("properties").at("experiment_name");
  CHECK(name.at("deprecationMessage") == "write run_name");
  CHECK(schema.at("additionalProperties") == false);

  const json& definitions = schema.at("definitions");
  const json& adamw = definitions.at("optimizer.adamw").at("properties");
  CHECK(adamw.contains("lr"));
  CHECK(adamw.contains("no_decay"));  // common to every optimizer
  // Another framework's word, which all optimizers share.
  CHECK(adamw.at("learning_rate").at("$ref") == "#/definitions/property.learning_rate");
  CHECK(definitions.at("property.learning_rate").at("deprecated") == true);
  const json& offered = definitions.at("optimizer").at("examples");
  CHECK(std::find(offered.begin(), offered.end(), "adamw") != offered.end());
  // A block in a list is whole; one that extends may complete is not asked for its required keys.
  CHECK(definitions.at("layer.linear").at("required") == json::array({"out_features"}));
  CHECK_FALSE(definitions.at("model.sequential").contains("required"));
}

TEST_CASE("the editors' schema has a line for each property", "[registry][editor_schema]") {
  const std::string text = runner::registry::editor_schema(Registry::builtin());
  CHECK(std::count(text.begin(), text.end(), '\n') < 3100);
  CHECK(text.find("\n  \"seed\": {\"description\":") != std::string::npos);
  CHECK(text.find("\n    \"decoupled_weight_decay\": {\"description\":") != std::string::npos);
}
