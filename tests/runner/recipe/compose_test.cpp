#include "runner/recipe/compose.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "runner/core/platform/files.h"
#include "tests/support/history.h"
#include "tests/support/temp_dir.h"

using runner::core::Diagnostics;
using runner::core::Node;
using runner::core::Source;
using runner::recipe::Composed;
using runner::recipe::ComposeOptions;
using runner::recipe::Override;

namespace {

ComposeOptions with_sets(const std::vector<std::string>& sets) {
  ComposeOptions options;
  for (const std::string& text : sets) options.overrides.push_back({Override::Kind::kSet, text});
  return options;
}

// The composed recipe in one line, or what is wrong with it without excerpts.
std::string compose(const std::string& yaml, const ComposeOptions& options = {}) {
  Diagnostics diagnostics;
  const auto source = std::make_shared<const Source>(Source{"r.yaml", yaml, Source::Kind::kFile});
  const auto composed = runner::recipe::compose_text(source, options, diagnostics);
  diagnostics.sort();
  if (diagnostics.has_errors() || !composed) return render(diagnostics, {false, false});
  return to_json(composed->root, -1);
}

// Files of one recipe in a folder of their own; messages are compared without its name.
class Files {
 public:
  void add(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_ / name).parent_path());
    runner::core::write_file_atomic(dir_ / name, text).value();
  }

  std::string compose(const std::string& name, const ComposeOptions& options = {}) {
    Diagnostics diagnostics;
    composed = runner::recipe::compose(dir_ / name, options, diagnostics);
    diagnostics.sort();
    std::string text =
        diagnostics.has_errors() || !composed ? render(diagnostics, {false, false}) : to_json(composed->root, -1);
    for (std::size_t at = text.find(dir_.path() + "/"); at != std::string::npos; at = text.find(dir_.path() + "/")) {
      text.erase(at, dir_.path().size() + 1);
    }
    return text;
  }

  std::string path(const std::string& name) const { return dir_ / name; }

  std::optional<Composed> composed;

 private:
  tests::TempDir dir_;
};

}  // namespace

TEST_CASE("extends lays files below a recipe", "[recipe][compose]") {
  Files files;
  files.add("base.yaml",
            "optimizer: {type: adamw, lr: 1e-3, eps: 1e-8}\nmodel: {type: mlp, hidden: [8, 8]}\nloss: mse\n");
  files.add("sweep.yaml", "sweep: {parameters: {a.b: {min: 1, max: 2, when: x}, c: {values: [1]}, d: {mu: 3}}}\n");
  files.add("lib/deep.yaml", "extends: ../base.yaml\ntraining: {max_steps: 5}\n");
  struct Case {
    const char* name;
    const char* recipe;
    const char* json;
  };
  static constexpr Case cases[] = {
      {"keys join", "extends: base.yaml\noptimizer: {lr: 2e-3}\n",
       R"({"optimizer": {"type": "adamw", "lr": 0.002, "eps": 1e-8}, "model": {"type": "mlp", )"
       R"("hidden": [8, 8]}, "loss": "mse"})"},
      {"another type replaces the block", "extends: base.yaml\noptimizer: {type: sgd}\n",
       R"({"optimizer": {"type": "sgd"}, "model": {"type": "mlp", "hidden": [8, 8]}, "loss": "mse"})"},
      {"a bare name is a type", "extends: base.yaml\noptimizer: sgd\nloss: {type: mse}\n",
       R"({"optimizer": "sgd", "model": {"type": "mlp", "hidden": [8, 8]}, "loss": {"type": "mse"}})"},
      {"the same bare name changes nothing", "extends: base.yaml\noptimizer: adamw\nloss: {x: 1}\n",
       R"({"optimizer": {"type": "adamw", "lr": 0.001, "eps": 1e-8}, "model": {"type": "mlp", )"
       R"("hidden": [8, 8]}, "loss": {"type": "mse", "x": 1}})"},
      {"lists are replaced", "extends: base.yaml\nmodel: {hidden: [4]}\n",
       R"({"optimizer": {"type": "adamw", "lr": 0.001, "eps": 1e-8}, "model": {"type": "mlp", )"
       R"("hidden": [4]}, "loss": "mse"})"},
      {"in order, the last one wins", "extends: [lib/deep.yaml, base.yaml]\n",
       R"({"optimizer": {"type": "adamw", "lr": 0.001, "eps": 1e-8}, "model": {"type": "mlp", )"
       R"("hidden": [8, 8]}, "loss": "mse", "training": {"max_steps": 5}})"},
      {"a parameter of a sweep is redefined, and null removes one",
       "extends: sweep.yaml\nsweep: {parameters: {d: null, a.b: {values: [5]}, c: {min: 1, max: 3}}}\n",
       R"({"sweep": {"parameters": {"a.b": {"when": "x", "values": [5]}, "c": {"min": 1, "max": 3}}}})"},
      {"a parameter of a sweep keeps what the one above says nothing of",
       "extends: sweep.yaml\nsweep: {parameters: {a.b: {max: 3}, d: {distribution: normal}}}\n",
       R"({"sweep": {"parameters": {"a.b": {"min": 1, "max": 3, "when": "x"}, "c": {"values": [1]}, )"
       R"("d": {"distribution": "normal"}}}})"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      files.add("r.yaml", c.recipe);
      CHECK(files.compose("r.yaml") == c.json);
    }
  }
}

TEST_CASE("a value knows the files it crossed", "[recipe][compose]") {
  Files files;
  files.add("base.yaml", "a: 1\n");
  files.add("lib/deep.yaml", "extends: ../base.yaml\nb: 2\n");
  files.add("r.yaml", "extends: lib/deep.yaml\nc: 3\n");
  files.compose("r.yaml");
  REQUIRE(files.composed);
  const Node& root = files.composed->root;
  CHECK(root.find("a")->location().text() == files.path("lib/../base.yaml:1:4"));
  CHECK(tests::history_of(*root.find("a")) == std::vector<std::string>{"extends " + files.path("lib/deep.yaml"),
                                                                       "extends " + files.path("lib/../base.yaml")});
  CHECK(root.find("c")->history().empty());
  CHECK(files.composed->sources.size() == 3);
}

TEST_CASE("an extends that cannot be followed is reported at its location", "[recipe][compose]") {
  Files files;
  files.add("a.yaml", "extends: b.yaml\n");
  files.add("b.yaml", "extends: [c.yaml]\n");
  files.add("c.yaml", "extends: a.yaml\n");
  CHECK(files.compose("a.yaml") ==
        "c.yaml:1:10: error: extends has a cycle: a.yaml -> b.yaml -> c.yaml -> a.yaml\n"
        "  hint: one of these files must not extend the next\n");
  files.add("r.yaml", "extends: [bb.yaml, 3, '${vars.x}', '']\n");
  CHECK(files.compose("r.yaml") ==
        "r.yaml:1:11: error: cannot read bb.yaml: file not found\n"
        "  hint: did you mean \"b.yaml\"?\n"
        "r.yaml:1:20: error: extends must be a path or a list of paths, got 3\n"
        "  hint: paths are relative to the file that names them\n"
        "r.yaml:1:23: error: extends is read before ${...} is replaced\n"
        "  hint: write the full path, relative to this file\n"
        "r.yaml:1:36: error: extends must be a path or a list of paths, got \"\"\n"
        "  hint: paths are relative to the file that names them\n");
  for (int i = 0; i < 20; ++i)
    files.add("d" + std::to_string(i) + ".yaml", "extends: d" + std::to_string(i + 1) + ".yaml\n");
  CHECK(files.compose("d0.yaml") == "d16.yaml:1:10: error: extends is more than 16 files deep\n");
  files.add("x.txt", "a: 1\n");
  CHECK(files.compose("x.txt") == "error: a recipe is a .yaml, .yml, .json or .jsonnet file, got x.txt\n");
}

TEST_CASE("flags change a recipe", "[recipe][override]") {
  static const std::string yaml =
      "optimizer: adamw\nmodel: {type: sequential, layers: [{type: linear, p: 1}, relu]}\nmetrics: accuracy\nx: {y: "
      "1}\n";
  struct Case {
    const char* name;
    std::vector<std::string> sets;
    const char* expected;
  };
  const Case cases[] = {
      {"a value of its own type",
       {"~model", "x.y=1e-4"},
       R"({"optimizer": "adamw", "metrics": "accuracy", "x": {"y": 1e-4}})"},
      {"keys on the way are made",
       {"~model", "~x", "a.b.c=[1, {d: e}]"},
       R"({"optimizer": "adamw", "metrics": "accuracy", "a": {"b": {"c": [1, {"d": "e"}]}}})"},
      {"a bare name becomes a block",
       {"~model", "~x", "~metrics", "optimizer.lr=0.1"},
       R"({"optimizer": {"type": "adamw", "lr": 0.1}})"},
      {"an item of a list",
       {"~x", "~metrics", "~optimizer", "model.layers[0].p=2", "model.layers[1].q=3"},
       R"({"model": {"type": "sequential", "layers": [{"type": "linear", "p": 2}, {"type": "relu", "q": 3}]}})"},
      {"another type replaces the block",
       {"~x", "~metrics", "~optimizer", "model.type=mlp"},
       R"({"model": {"type": "mlp"}})"},
      {"appending, also to one value and to nothing",
       {"~x", "~model", "~optimizer", "+metrics=mse", "+c=1"},
       R"({"metrics": ["accuracy", "mse"], "c": [1]})"},
      {"deleting an item",
       {"~x", "~metrics", "~optimizer", "~model.layers[0]"},
       R"({"model": {"type": "sequential", "layers": ["relu"]}})"},
      {"an equals sign in the value", {"~x", "~metrics", "~optimizer", "~model", "a=b=c"}, R"({"a": "b=c"})"},
      {"no equals sign",
       {"x.y"},
       "--set x.y: error: missing \"=\" between path and value\n  hint: write path=value, +path=value to append to "
       "a list, or ~path to delete\n"},
      {"nothing to delete",
       {"~x.z", "~optimzer"},
       "--set ~x.z: error: there is no x.z\n  hint: x holds y\n--set ~optimzer: error: there is no optimzer\n  hint: "
       "did you mean \"optimizer\"?\n"},
      {"past the end of a list",
       {"model.layers[2]=relu"},
       "--set model.layers[2]=relu: error: model.layers has 2 entries, there is no [2]\n  hint: counted from [0] to "
       "[1]; +path=value appends\n"},
      {"a key of a number", {"x.y.z=1"}, "--set x.y.z=1: error: x.y is 1, it has no key \"z\"\n"},
      {"a key of a list",
       {"model.layers.p=1"},
       "--set model.layers.p=1: error: model.layers is a list, it has no key \"p\"\n  hint: name its entry first: "
       "model.layers[0]\n"},
      {"an item of a mapping", {"x[0]=1"}, "--set x[0]=1: error: x is a mapping, not a list, so it has no [0]\n"},
      {"appending to a mapping",
       {"+x=1"},
       "--set +x=1: error: x is a mapping, only a list can be appended to\n  hint: set a key of it: path.key=value\n"},
      {"deleting with a value",
       {"~x=1"},
       "--set ~x=1: error: ~ deletes a key and accepts no value\n  hint: write ~x\n"},
      {"a value that is no YAML",
       {"x.y={a: 1"},
       "--set x.y={a: 1: error: the value \"{a: 1\" cannot be read: this { is never closed, or a comma is missing "
       "between two entries\n  hint: close it with }\n"},
      {"extends",
       {"extends=b.yaml"},
       "--set extends=b.yaml: error: extends is resolved before --set is applied\n  hint: merge a file into the recipe "
       "with --set-file FILE\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(compose(yaml, with_sets(c.sets)) == c.expected); }
  }
}

TEST_CASE("a mark alone is text on the command line", "[recipe][override]") {
  for (const std::string mark : {",", ";", "|", "#", ":", "*", "&", "%", "@", "!", "-", "[", "{", ">", "'"}) {
    CAPTURE(mark);
    CHECK(compose("x: 1\n", with_sets({"x=" + mark})) == R"({"x": ")" + mark + "\"}");
  }
  CHECK(compose("x: 1\n", with_sets({"x=~"})) == R"({"x": null})");
}

TEST_CASE("a file can be laid upon a recipe", "[recipe][override]") {
  Files files;
  files.add("r.yaml", "a: {b: 1, c: 2}\n");
  files.add("over.yaml", "a: {c: 3}\n");
  ComposeOptions options;
  options.overrides = {{Override::Kind::kSetFile, files.path("over.yaml")}, {Override::Kind::kSet, "a.b=4"}};
  CHECK(files.compose("r.yaml", options) == R"({"a": {"b": 4, "c": 3}})");
  CHECK(tests::history_of(*files.composed->root.at_path("a.c")) ==
        std::vector<std::string>{"--set-file " + files.path("over.yaml")});
  options.overrides = {{Override::Kind::kSetFile, files.path("ovr.yaml")}};
  CHECK(files.compose("r.yaml", options) ==
        "--set-file ovr.yaml: error: cannot read ovr.yaml: file not found\n  hint: did you mean \"over.yaml\"?\n");
}

TEST_CASE("the folder of the recipe is that of the file that says so", "[recipe][interpolate]") {
  Files files;
  const std::string value = "t: ${recipe_dir}/t.csv\nu: \"$${recipe_dir} ${env:ROUX_TEST_UNSET:-${recipe_dir}}\"\n";
  ::unsetenv("ROUX_TEST_UNSET");
  files.add("lib/base.yaml", value);
  files.add("exp/r.yaml", "extends: ../lib/base.yaml\nown: ${recipe_dir}\n");
  CHECK(files.compose("exp/r.yaml") == R"({"t": "exp/../lib/t.csv", "u": "${recipe_dir} exp/../lib", "own": ")"
                                       "exp"
                                       R"("})");
  files.add("lib/beside.yaml", "extends: base.yaml\n");
  CHECK(files.compose("lib/beside.yaml") == R"({"t": "lib/t.csv", "u": "${recipe_dir} lib"})");
  // A file that is laid upon the recipe is in its own folder, wherever the recipe is.
  files.add("exp/plain.yaml", "t: 1\n");
  ComposeOptions options;
  options.overrides = {{Override::Kind::kSetFile, files.path("lib/base.yaml")}};
  CHECK(files.compose("exp/plain.yaml", options) == R"({"t": "lib/t.csv", "u": "${recipe_dir} lib"})");
  // What is not replaced yet is said by way of the recipe's folder: a recorded recipe may be read elsewhere.
  Diagnostics diagnostics;
  const auto open = runner::recipe::compose_uninterpolated(files.path("exp/r.yaml"), {}, diagnostics);
  REQUIRE(open);
  CHECK(open->root.at_path("t")->as_string() == "${recipe_dir}/../lib/t.csv");
}

TEST_CASE("references are replaced", "[recipe][interpolate]") {
  ::setenv("ROUX_TEST_SET", "12", 1);
  ::setenv("ROUX_TEST_EMPTY", "", 1);
  ::unsetenv("ROUX_TEST_UNSET");
  struct Case {
    const char* name;
    const char* yaml;
    const char* expected;
  };
  static constexpr Case cases[] = {
      {"a whole value keeps its type", "vars: {w: 8, l: [1, {a: b}]}\nx: ${vars.w}\ny: ${vars.l}\nz: ${vars.l[1].a}\n",
       R"({"vars": {"w": 8, "l": [1, {"a": "b"}]}, "x": 8, "y": [1, {"a": "b"}], "z": "b"})"},
      {"a part becomes text", "vars: {w: 1e-4}\nx: \"w=${vars.w}, again ${vars.w}\"\n",
       R"({"vars": {"w": 1e-4}, "x": "w=1e-4, again 1e-4"})"},
      {"any path", "model: {n: 3}\nx: ${model.n}\n", R"({"model": {"n": 3}, "x": 3})"},
      {"in any order, one by the other", "a: ${b.c}\nb: ${d}\nd: {c: \"${e}\"}\ne: 1\n",
       R"({"a": 1, "b": {"c": 1}, "d": {"c": 1}, "e": 1})"},
      {"dollars of their own", "a: $${vars.x}\nb: $5\nc: ${a}\n", R"({"a": "${vars.x}", "b": "$5", "c": "${vars.x}"})"},
      {"the environment",
       "a: ${env:ROUX_TEST_SET}\nb: ${env:ROUX_TEST_UNSET:-no ${a}}\nc: '${env:ROUX_TEST_UNSET:-}'\n",
       R"({"a": "12", "b": "no 12", "c": ""})"},
      {"a variable that is set to nothing", "a: x${env:ROUX_TEST_EMPTY}\nb: ${env:ROUX_TEST_EMPTY:-5}\n",
       R"({"a": "x", "b": "5"})"},
      {"the folder of the recipe", "a: ${recipe_dir}/x\n", R"({"a": "./x"})"},
      {"a misspelt variable", "vars: {width: 1}\na: ${vars.widht}\nb: ${width}\n",
       "r.yaml:2:4: error: ${vars.widht} refers to nothing: vars.widht not found\n  hint: did you mean "
       "${vars.width}?\n"
       "r.yaml:3:4: error: ${width} refers to nothing: width not found\n  hint: did you mean ${vars.width}?\n"},
      {"a default that is not written", "model: {}\na: ${model.n_embd}\n",
       "r.yaml:2:4: error: ${model.n_embd} refers to nothing: model.n_embd not found\n"
       "  hint: a reference names what is written in the recipe; defaults are filled in later\n"},
      {"past the end of a list", "a: [1]\nb: ${a[1]}\n",
       "r.yaml:2:4: error: ${a[1]} refers to nothing: a[1] not found\n  hint: a has 1 entry\n"},
      {"a variable that is not set", "a: x ${env:ROUX_TEST_UNSET}\n",
       "r.yaml:1:6: error: the environment variable ROUX_TEST_UNSET is not set\n  hint: did you mean "
       "${env:ROUX_TEST_SET}?\n"},
      {"a circle", "a: ${b}\nb: ${c}\nc: ${a}\n",
       "r.yaml:1:4: error: the references have a cycle: a -> b -> c -> a\n  hint: give one of them a value\n"},
      {"a value in itself", "a: {b: \"${a}\"}\n",
       "r.yaml:1:8: error: the value refers to itself: a.b -> a, which holds a.b\n  hint: refer to a part of it that "
       "does not refer back\n"},
      {"a list as a part of a text", "a: [1]\nb: x${a}\n",
       "r.yaml:2:5: error: ${a} is a list and cannot be a part of a text\n  hint: refer to one value of it, or let the "
       "reference be the whole value\n"},
      {"an open brace", "a: \"x ${b\"\n",
       "r.yaml:1:7: error: ${ without its closing }\n  hint: write $${ for a literal ${\n"},
      {"nothing between the braces", "a: ${}\n",
       "r.yaml:1:4: error: ${} has no name\n  hint: write ${vars.name}, ${env:NAME} or a path of the recipe\n"},
      {"no path", "a: ${b..c}\n",
       "r.yaml:1:4: error: \"b..c\" is not a path: two dots follow each other\n  hint: write ${vars.name}, ${env:NAME} "
       "or "
       "a path of the recipe\n"},
      {"no name of a variable", "a: \"${env:A B}\"\n",
       "r.yaml:1:4: error: \"A B\" is not a name of an environment variable\n  hint: write ${env:NAME} or "
       "${env:NAME:-default}\n"},
      {"in a key", "${a}: 1\n",
       "r.yaml:1:1: error: a key cannot hold a reference, got \"${a}\"\n  hint: use references in values only\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(compose(c.yaml) == c.expected); }
  }
}

TEST_CASE("references cannot blow a recipe up", "[recipe][interpolate]") {
  const auto first_line = [](const std::string& yaml) {
    const std::string told = compose(yaml);
    return told.substr(0, told.find('\n'));
  };
  std::string lists = "a0: [x, x, x, x, x, x, x, x, x, x]\n", texts = "a0: xx\n", chain, nest = "a0: [x]\n";
  for (int i = 1; i < 70; ++i) {
    const std::string n = std::to_string(i), below = "\"${a" + std::to_string(i - 1) + "}\"";
    if (i < 12)
      lists +=
          "a" + n + ": [" + below + ", " + below + ", " + below + ", " + below + ", " + below + ", " + below + "]\n";
    texts += "a" + n + ": \"${a" + std::to_string(i - 1) + "}${a" + std::to_string(i - 1) + "}\"\n";
    chain += "a" + n + ": ${a" + std::to_string(i + 1) + "}\n";
    nest += "a" + n + ": [" + below + "]\n";
  }
  CHECK(first_line(lists).find("error: references repeat more than 50000 values") != std::string::npos);
  CHECK(first_line(texts).find("error: references make this text longer than 1048576 bytes") != std::string::npos);
  CHECK(first_line(chain).find("error: references are nested more than 32 times") != std::string::npos);
  CHECK(first_line(nest).find("error: references nest values more than 64 levels deep") != std::string::npos);
}

TEST_CASE("a value knows the variables it came through", "[recipe][interpolate]") {
  ::setenv("ROUX_TEST_SET", "12", 1);
  Diagnostics diagnostics;
  const auto source = std::make_shared<const Source>(
      Source{"r.yaml", "vars: {t: '${env:ROUX_TEST_SET}'}\na: ${vars.t}\nb: x${vars.t}\n", Source::Kind::kFile});
  const auto composed = runner::recipe::compose_text(source, {}, diagnostics);
  const std::vector<std::string> steps{"variable vars.t", "${env:ROUX_TEST_SET}"};
  CHECK(tests::history_of(*composed->root.find("a")) == steps);
  CHECK(tests::history_of(*composed->root.find("b")) == steps);
  CHECK(composed->root.find("a")->location().text() == "r.yaml:2:4");
}

TEST_CASE("Jsonnet is evaluated, with imports and places", "[recipe][jsonnet]") {
  Files files;
  files.add("lib/base.libsonnet", "{ model: { type: 'gpt', width: 4 * 3 } }\n");
  files.add("r.jsonnet",
            "local base = import 'lib/base.libsonnet';\nbase + {\n  seed: std.parseInt(std.extVar('seed')),\n  max: "
            "100,\n}\n");
  ComposeOptions options;
  options.ext["seed"] = "7";
  CHECK(files.compose("r.jsonnet", options) == R"({"max": 100, "model": {"type": "gpt", "width": 12}, "seed": 7})");
  CHECK(files.composed->sources.size() == 2);
  CHECK(files.composed->root.find("max")->location().text() == files.path("r.jsonnet:4:8"));
  CHECK(files.composed->root.find("seed")->location().text() == files.path("r.jsonnet:3:3"));
  CHECK(files.composed->root.at_path("model.width")->location().text() == files.path("r.jsonnet"));
  CHECK(files.compose("r.jsonnet") ==
        "r.jsonnet:3:22: error: undefined external variable: seed\n  hint: define it with --ext seed=VALUE\n");

  files.add("marked.libsonnet", "\xEF\xBB\xBF{ a: 1 }\n");
  files.add("marked.jsonnet", "\xEF\xBB\xBF(import 'marked.libsonnet') + { b: 2 }\n");
  CHECK(files.compose("marked.jsonnet") == R"({"a": 1, "b": 2})");

  files.add("y.yaml", "extends: r.jsonnet\nmax: 5\n");
  CHECK(files.compose("y.yaml", options) == R"({"max": 5, "model": {"type": "gpt", "width": 12}, "seed": 7})");

  struct Case {
    const char* text;
    const char* expected;
  };
  static constexpr Case cases[] = {
      {"{ a: 1", "j.jsonnet:1:7: error: expected a comma before next field\n"},
      {"{ a: error 'boom' }", "j.jsonnet:1:6: error: boom\n"},
      {"local f(x) = f(x + 1); f(1)",
       "j.jsonnet:1:14: error: max stack frames exceeded\n  hint: infinite recursion of a function, or of two "
       "values\n"},
      {"[1]", "j.jsonnet: error: a recipe is a mapping of keys, got a list\n  hint: write { ... } at the top level\n"},
      {"{ a: self.b }", "j.jsonnet:1:6: error: field does not exist: b\n"},
  };
  for (const Case& c : cases) {
    files.add("j.jsonnet", c.text);
    CHECK(files.compose("j.jsonnet") == c.expected);
  }
}
