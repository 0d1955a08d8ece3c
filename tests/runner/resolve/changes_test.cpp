#include "runner/resolve/changes.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "runner/recipe/read.h"
#include "tests/support/temp_dir.h"

namespace runner::resolve {
namespace {

using core::Node;

Node tree(const std::string& yaml) {
  core::Diagnostics diagnostics;
  auto node = recipe::read_yaml(std::make_shared<core::Source>(core::Source{"r.yaml", yaml, core::Source::Kind::kFile}),
                                {}, diagnostics);
  REQUIRE(node.has_value());
  return std::move(*node);
}

}  // namespace

TEST_CASE("two recipes are compared leaf by leaf", "[registry][changes]") {
  struct Case {
    const char *name, *before, *after;
    std::vector<std::string> changes;
  };
  const Case cases[] = {
      {"the same", "{a: 1, b: {c: x}}", "{b: {c: x}, a: 1}", {}},
      {"a value", "{a: 1, b: {c: x}}", "{a: 1, b: {c: y}}", {"b.c: x -> y"}},
      {"a key more", "{a: 1}", "{a: 1, d: [1]}", {"d: absent -> [1]"}},
      {"a key less", "{a: 1, d: 2}", "{a: 1}", {"d: 2 -> absent"}},
      {"a number in other words", "{a: 10000}", "{a: 1e4}", {}},
      {"null is absent", "{a: 1}", "{a: 1, d: null}", {}},
      {"an item", "{l: [{p: 1}, {p: 2}]}", "{l: [{p: 1}, {p: 3}]}", {"l[1].p: 2 -> 3"}},
      {"another length", "{l: [1]}", "{l: [1, 2]}", {"l: [1] -> [1, 2]"}},
      {"another kind", "{l: 1}", "{l: {x: 1}}", {R"(l: 1 -> {"x": 1})"}},
      {"infinity, a text in JSON", "{a: inf, b: -.inf}", "{a: .inf, b: '-inf'}", {}},
      {"another infinity", "{a: inf, b: .inf}", "{a: -.inf, b: 2.0}", {"a: inf -> -.inf", "b: .inf -> 2.0"}},
      {"empty text", "{a: ''}", "{a: b}", {R"(a: "" -> b)"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      std::vector<std::string> found;
      for (const Change& change : list_changes(tree(c.before), tree(c.after))) {
        found.push_back(change.path + ": " + change.before_text() + " -> " + change.after_text());
      }
      CHECK(found == c.changes);
    }
  }
}

TEST_CASE("a recorded value has its place in the recipe as it was written, unless a flag changed it",
          "[registry][changes]") {
  const tests::TempDir dir;
  const std::string run = dir.path();
  std::filesystem::create_directories(run + "/recipe");
  std::ofstream(run + "/recipe.yaml") << "extends: lib.yaml\nloss: mse\nlr: 1e-3\nsteps: 5\n";
  std::ofstream(run + "/recipe/1-lib.yaml") << "seed: 3\nlr: 0.1\n";
  std::ofstream(run + "/resolved.json")
      << "{\n\"loss\": {\"type\": \"mse\"},\n\"lr\": 0.001,\n\"steps\": 7,\n\"seed\": 3\n}";
  const Node recipe = read_recorded_recipe(run, run + "/resolved.json").value();
  const auto place = [&](const char* path) { return recipe.at_path(path)->location().text(); };
  CHECK(place("lr") == run + "/recipe.yaml:3:5");
  CHECK(place("loss.type") == run + "/recipe.yaml:2:7");
  CHECK(place("seed") == run + "/recipe/1-lib.yaml:1:7");
  CHECK(place("steps") == run + "/resolved.json:4:10");
  CHECK(!read_recorded_recipe(run, run + "/gone.json"));
}

TEST_CASE("only a value of the run's own files gets its place in the recipe as it was written", "[registry][changes]") {
  const tests::TempDir dir;
  std::ofstream(dir.path() + "/recipe.yaml") << "lr: 1e-3\nseed: 3\n";
  const auto value = [](const std::string& file) {
    auto source = std::make_shared<core::Source>(core::Source{file, "", core::Source::Kind::kFile});
    return Node::integer(3, {source, 9, 9, 1});
  };
  const auto place = [&](const std::string& file) {
    Node recipe = Node::mapping();
    recipe.set("seed", value(file), {});
    locate_as_written(recipe, dir.path());
    return recipe.at_path("seed")->location().text();
  };
  CHECK(place(dir.path() + "/branches/1/resolved.json") == dir.path() + "/recipe.yaml:2:7");
  CHECK(place("over.yaml") == "over.yaml:9:9");
  CHECK(place(dir.path() + "-2/over.yaml") == dir.path() + "-2/over.yaml:9:9");
}

}  // namespace runner::resolve
