#include "runner/registry/validate.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>

#include "runner/recipe/compose.h"
#include "runner/resolve/recipe.h"
#include "tests/support/history.h"

namespace runner::registry {
namespace {

const char* kKinds = R"([
  {"kind": "optimizer", "title": "Optimizers", "namespace": "c", "header": "h", "product": "P", "layer": "engine"},
  {"kind": "tracker", "title": "Trackers", "namespace": "c", "header": "h", "product": "P", "layer": "roux"}])";

const char* kAliases = R"({
  "aliases": [
    {"word": "learning_rate", "at": ["", "training"], "path": "optimizer.lr"},
    {"word": "mixed_precision", "at": [""], "path": "precision.mode", "values": {"no": "32-true", "bf16": "bf16-mixed"}}],
  "foreign": [{"word": "megatron", "hint": "there is no megatron here"}]})";

const char* kRecipe = R"({
  "title": "t", "description": "d",
  "properties": {
    "recipe_version": {"type": "integer", "default": 1, "description": "d"},
    "vars": {"type": "object", "additionalProperties": {"x-type": "any"}, "default": {}, "description": "d"},
    "seed": {"type": "integer", "minimum": 0, "default": 1, "description": "d"},
    "optimizer": {"x-kind": "optimizer", "description": "d"},
    "precision": {"x-kind": "section", "default": {}, "description": "d"},
    "training": {"x-kind": "section", "default": {}, "description": "d"},
    "trackers": {"type": "array", "items": {"x-kind": "tracker"}, "default": [], "description": "d"}}})";

const char* kPrecision = R"({
  "title": "t", "description": "d", "x-short-form": "mode",
  "properties": {"mode": {"type": "string", "enum": ["32-true", "bf16-mixed"], "default": "32-true", "description": "d"}}})";

const char* kTraining = R"({
  "title": "t", "description": "d",
  "properties": {
    "max_steps": {"type": "integer", "minimum": 1, "default": null, "description": "d"},
    "ratio": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5, "description": "d"},
    "factor": {"type": "number", "exclusiveMinimum": 0, "default": 1.0, "description": "d"},
    "norm": {"type": "number", "x-infinity": true, "default": 2.0, "description": "A norm; .inf is the largest."},
    "flag": {"type": "boolean", "default": true, "x-aliases": ["switch_on"], "description": "d"},
    "name": {"type": "string", "pattern": "^[a-z]+$", "x-pattern-hint": "be small letters", "default": "run", "description": "d"},
    "note": {"type": "string", "minLength": 1, "default": null, "description": "d"},
    "every": {"x-type": "interval", "default": null, "description": "d"},
    "limit": {"x-type": "duration", "default": null, "description": "d"},
    "cache": {"x-type": "bytes", "default": null, "description": "d"},
    "path": {"type": "array", "items": {"x-type": "path"}, "x-single": true, "default": [], "description": "d"},
    "sizes": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1, "maxItems": 3, "default": [1], "description": "d"},
    "pair": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2, "default": [1, 2], "description": "d"},
    "groups": {"type": "array", "default": [], "description": "d",
               "items": {"type": "object", "properties": {"lr": {"type": "number", "default": 1, "description": "d"}}}},
    "a_steps": {"type": "integer", "default": 0, "x-exclusive": ["a_ratio"], "description": "d"},
    "a_ratio": {"type": "number", "default": null, "description": "d"}}})";

const char* kSgd = R"({
  "title": "SGD", "description": "d",
  "properties": {
    "lr": {"type": "number", "minimum": 0, "description": "Size of a step. More."},
    "momentum": {"type": "number", "default": 0.0, "description": "d"},
    "nesterov": {"type": "boolean", "default": false, "description": "d"}},
  "x-checks": [{"rule": "not nesterov or momentum > 0", "at": "nesterov",
                "message": "nesterov needs a momentum, which is {momentum}", "hint": "give momentum: 0.9"}],
  "examples": [{"type": "sgd", "lr": 1}]})";

const char* kAdam = R"({
  "title": "Adam", "description": "d",
  "properties": {"lr": {"type": "number", "minimum": 0, "default": 0.001, "description": "d"},
                 "amsgrad": {"type": "boolean", "default": false, "description": "d"}},
  "examples": [{"type": "adam"}]})";

const char* kCommon = R"({
  "title": "t", "description": "d",
  "properties": {"no_decay": {"type": "array", "items": {"type": "string"}, "x-single": true, "default": [], "description": "d"}}})";

const char* kWandb = R"({
  "title": "W", "description": "d", "x-holds": ["scalars"], "x-resync": "a",
  "properties": {"api_key": {"x-type": "secret", "default": null, "description": "d"}},
  "examples": [{"type": "wandb"}]})";

const Registry& registry() {
  static const Registry made(Embedded{{{"section", "recipe", kRecipe},
                                       {"section", "precision", kPrecision},
                                       {"section", "training", kTraining},
                                       {"section", "optimizer_common", kCommon},
                                       {"optimizer", "sgd", kSgd},
                                       {"optimizer", "adam", kAdam},
                                       {"tracker", "wandb", kWandb}},
                                      kKinds,
                                      kAliases});
  return made;
}

struct Checked {
  core::Node root;
  std::string messages;
};

Checked checked(const std::string& yaml) {
  core::Diagnostics diagnostics;
  auto source = std::make_shared<core::Source>(core::Source{"r.yaml", yaml, core::Source::Kind::kFile});
  auto composed = recipe::compose_text(source, {}, diagnostics);
  Checked result;
  if (composed) result.root = validate_recipe(composed->root, registry(), diagnostics);
  diagnostics.sort();
  core::RenderOptions options;
  options.excerpts = false;
  result.messages = core::render(diagnostics, options);
  return result;
}

TEST_CASE("errors have a location and a hint", "[registry][validate]") {
  struct Case {
    const char* yaml;
    const char* messages;
  };
  static constexpr Case cases[] = {
      // Numbers.
      {"seed: ten", "r.yaml:2:7: error: seed must be an integer, got \"ten\"\n"},
      {"seed: \"10\"", "r.yaml:2:7: error: seed must be an integer, got \"10\"\n  hint: write it without quotes: 10\n"},
      {"seed: 1_000", "r.yaml:2:7: error: seed must be an integer, got \"1_000\"\n  hint: write 1000\n"},
      {"seed: 1,000", "r.yaml:2:7: error: seed must be an integer, got \"1,000\"\n  hint: write 1000\n"},
      {"seed: 1.5", "r.yaml:2:7: error: seed must be an integer, got 1.5\n"},
      {"vars: {a: 1}\ntraining:\n  ratio: 0,5",
       "r.yaml:4:10: error: training.ratio must be a number, got \"0,5\"\n  hint: write 0.5\n"},
      {"training: {norm: Infinity}",
       "r.yaml:2:18: error: training.norm must be a number, got \"Infinity\"\n  hint: write .inf\n"},
      {"training: {factor: inf}", "r.yaml:2:20: error: training.factor must be a number, got \"inf\"\n"},
      {"training: {norm: inf}", ""},
      {"training: {limit: -5}", "r.yaml:2:19: error: training.limit must be greater than 0, got -5\n"},
      {"seed: 1e18", ""},
      {"seed: 1e30", "r.yaml:2:7: error: seed must be an integer, got 1e30\n"},
      {"seed: -1", "r.yaml:2:7: error: seed must be at least 0, got -1\n"},
      {"seed: true", "r.yaml:2:7: error: seed must be an integer, got true\n"},
      {"seed: [7]", "r.yaml:2:7: error: seed must be an integer, got a list\n  hint: write 7 without the brackets\n"},
      {"seed: {a: 1}", "r.yaml:2:7: error: seed must be an integer, got a mapping\n"},
      {"seed:",
       "r.yaml:2:1: error: seed must be an integer, got nothing\n  hint: leave the key out for the default, 1\n"},
      {"training: {ratio: 1.5}", "r.yaml:2:19: error: training.ratio must be between 0 and 1, got 1.5\n"},
      {"training: {factor: 0}", "r.yaml:2:20: error: training.factor must be greater than 0, got 0\n"},
      {"training: {factor: .inf}", "r.yaml:2:20: error: training.factor must be a finite number, got .inf\n"},
      {"training: {norm: .nan}", "r.yaml:2:18: error: training.norm must be a finite number, got .nan\n"},
      {"training: {norm: .inf}", ""},
      {"seed: 1e3", ""},
      // Booleans.
      {"training: {flag: yes}",
       "r.yaml:2:18: error: training.flag must be true or false, got \"yes\"\n  hint: write true\n"},
      {"training: {flag: OFF}",
       "r.yaml:2:18: error: training.flag must be true or false, got \"OFF\"\n  hint: write false\n"},
      {"training: {flag: 0}", "r.yaml:2:18: error: training.flag must be true or false, got 0\n  hint: write false\n"},
      {"training: {flag: \"true\"}",
       "r.yaml:2:18: error: training.flag must be true or false, got \"true\"\n  hint: write it without quotes: "
       "true\n"},
      {"training: {flag: maybe}", "r.yaml:2:18: error: training.flag must be true or false, got \"maybe\"\n"},
      // Text.
      {"training: {name: 12}", "r.yaml:2:18: error: training.name must be small letters, got \"12\"\n"},
      {"training: {name: true}",
       "r.yaml:2:18: error: training.name must be text, got true\n  hint: put it in quotes: name: \"true\"\n"},
      {"training: {name: A1}", "r.yaml:2:18: error: training.name must be small letters, got \"A1\"\n"},
      {"training: {note: \"\"}", "r.yaml:2:18: error: training.note must not be empty\n"},
      {"training: {note: \"a\\0b\"}", "r.yaml:2:18: error: training.note must not contain a NUL byte\n"},
      {"precision: {mode: bf16-mixd}",
       "r.yaml:2:19: error: precision.mode must be 32-true or bf16-mixed, got \"bf16-mixd\"\n  hint: did you mean "
       "\"bf16-mixed\"?\n"},
      {"precision: bf16",
       "r.yaml:2:12: error: precision.mode must be 32-true or bf16-mixed, got \"bf16\"\n  hint: did you mean "
       "\"bf16-mixed\"?\n"},
      {"precision: fp8", "r.yaml:2:12: error: precision.mode must be 32-true or bf16-mixed, got \"fp8\"\n"},
      {"precision: bf16-mixed", ""},
      // Amounts with a unit.
      {"training: {every: 2 epochs}",
       "r.yaml:2:19: error: training.every must be an interval, got \"2 epochs\"\n"
       "  hint: did you mean 2ep?\n"},
      {"training: {every: 0}",
       "r.yaml:2:19: error: training.every must be greater than 0, got 0\n  hint: for none, or what roux chooses, "
       "leave the key out\n"},
      {"training: {every: [1]}",
       "r.yaml:2:19: error: training.every must be an interval, got a list\n  hint: write 1 without the brackets\n"},
      {"training: {every: 2ep}", ""},
      {"training: {limit: soon}",
       "r.yaml:2:19: error: training.limit must be a duration, got \"soon\"\n"
       "  hint: write seconds or an amount with its unit: 90s, 30min, 1.5h, 2d, 1h30min\n"},
      {"training: {limit: 0}",
       "r.yaml:2:19: error: training.limit must be greater than 0, got 0\n  hint: for none, or what roux chooses, "
       "leave the key out\n"},
      {"training: {cache: big}",
       "r.yaml:2:19: error: training.cache must be a size in bytes, got \"big\"\n"
       "  hint: write bytes or an amount with its unit: 1024, 500MB, 10GB, 5GiB\n"},
      // Lists and mappings.
      {"training: {sizes: 3}",
       "r.yaml:2:19: error: training.sizes must be a list of integers, got 3\n  hint: write a list, such as [3]\n"},
      {"training: {sizes: []}", "r.yaml:2:19: error: training.sizes must have at least 1 item, got 0\n"},
      {"training: {sizes: [1, 2, 3, 4]}", "r.yaml:2:19: error: training.sizes must have at most 3 items, got 4\n"},
      {"training: {sizes: [1, x]}", "r.yaml:2:23: error: training.sizes[1] must be an integer, got \"x\"\n"},
      {"training: {pair: [1]}", "r.yaml:2:18: error: training.pair must have 2 items, got 1\n"},
      {"training: {path: 3}", "r.yaml:2:18: error: training.path must be a path, got 3\n"},
      {"training: {groups: [{lr: x}, 3]}",
       "r.yaml:2:26: error: training.groups[0].lr must be a number, got \"x\"\n"
       "r.yaml:2:30: error: training.groups[1] must be a mapping, got 3\n  hint: give its keys, indented, on the lines "
       "below\n"},
      {"training: 3",
       "r.yaml:2:11: error: training must be a mapping, got 3\n"
       "  hint: give its keys, indented, on the lines below; `roux explain section/training` shows them\n"},
      {"training:", ""},
      // Keys.
      {"sed: 3", "r.yaml:2:1: error: a recipe has no key \"sed\"\n  hint: did you mean \"seed\"?\n"},
      {"training: {max_step: 3}",
       "r.yaml:2:12: error: training has no key \"max_step\"\n  hint: did you mean \"max_steps\"?\n"},
      {"max_steps: 3",
       "r.yaml:2:1: error: a recipe has no key \"max_steps\"\n  hint: max_steps belongs under training\n"},
      {"training: {seed: 3}",
       "r.yaml:2:12: error: training has no key \"seed\"\n  hint: seed belongs at the top level\n"},
      {"training: {momentum: 3}",
       "r.yaml:2:12: error: training has no key \"momentum\"\n  hint: momentum belongs under optimizer\n"},
      {"megatron: {}", "r.yaml:2:1: error: a recipe has no key \"megatron\"\n  hint: there is no megatron here\n"},
      {"training.max_steps: 3",
       "r.yaml:2:1: error: a recipe has no key \"training.max_steps\"\n"
       "  hint: a key has no dots: write training:, and below it, indented, max_steps:\n"},
      {"\"a\\e[31m\": 3",
       "r.yaml:2:1: error: a recipe has no key \"a\\x1B[31m\"\n"
       "  hint: it accepts recipe_version, vars, seed, optimizer, precision, training and trackers\n"},
      {"zzz: {}",
       "r.yaml:2:1: error: a recipe has no key \"zzz\"\n"
       "  hint: it accepts recipe_version, vars, seed, optimizer, precision, training and trackers\n"},
      {"training: {a_steps: 3, a_ratio: 0.1}",
       "r.yaml:2:24: error: training.a_ratio and training.a_steps (line 2) are mutually exclusive\n  hint: keep one of "
       "them\n"},
      {"training: {a_steps: 3, a_ratio: null}", ""},
      // Aliases.
      {"training: {switch_on: false}", "r.yaml:2:12: notice: training.switch_on is read as training.flag\n"},
      {"training: {switch_on: false, flag: true}",
       "r.yaml:2:12: error: training.switch_on and training.flag (line 2) are the same setting\n  hint: keep "
       "training.flag\n"},
      {"learning_rate: 3",
       "r.yaml:2:1: error: learning_rate and optimizer.lr (line 1) are the same setting\n  hint: keep optimizer.lr\n"},
      {"mixed_precision: bf16", "r.yaml:2:1: notice: mixed_precision is read as precision.mode\n"},
      {"mixed_precision: fp16",
       "r.yaml:2:18: error: mixed_precision must be no or bf16, got \"fp16\"\n  hint: it is another name of "
       "precision.mode\n"},
      {"learning_rat: 3",
       "r.yaml:2:1: error: a recipe has no key \"learning_rat\"\n  hint: did you mean optimizer.lr?\n"},
      // Versions.
      {"recipe_version: 2\nseed: x",
       "r.yaml:2:17: error: recipe_version is 2, but this version of roux reads version 1\n"
       "  hint: use a newer roux, or write the recipe for version 1\n"},
      {"recipe_version: 0",
       "r.yaml:2:17: error: recipe_version is 0, but the oldest one, and the one this version of roux reads, is 1\n"
       "  hint: write recipe_version: 1\n"},
      // Secrets.
      {"trackers: [{type: wandb, api_key: hunter2}]",
       "r.yaml:2:35: error: trackers[0].api_key is a secret and is not allowed in a recipe in plain text\n"
       "  hint: write \"${env:NAME}\", or {file: PATH} for a file that holds it\n"},
      {"trackers: [{type: wandb, api_key: {file: key.txt}}]", ""},
      {"vars: {password: hunter2}",
       "r.yaml:2:18: error: vars.password looks like a secret in plain text\n"
       "  hint: write \"${env:NAME}\" and set it in the environment: a recipe is copied into every run\n"},
      {"vars: {a: [hf_abcdefghijklmnopqrstuvwxyz0123456]}",
       "r.yaml:2:12: error: vars.a[0] looks like a secret in plain text\n"
       "  hint: write \"${env:NAME}\" and set it in the environment: a recipe is copied into every run\n"},
      {"training: {hub: {token: {api_key: hunter2}}}",
       "r.yaml:2:12: error: training has no key \"hub\"\n  hint: `roux explain section/training` shows all 16\n"
       "r.yaml:2:35: error: training.hub.token.api_key looks like a secret in plain text\n"
       "  hint: write \"${env:NAME}\" and set it in the environment: a recipe is copied into every run\n"},
      {"vars: {pad_token: x, secretary: y}", ""},
      {"vars: {server: \"http://me:hunter2@host:5000\"}",
       "r.yaml:2:16: error: vars.server has a password in plain text\n"
       "  hint: write \"${env:NAME}\" in its place and set it in the environment: a recipe is copied into every run\n"},
      {"vars: {server: \"https://host/?token=hunter2\"}",
       "r.yaml:2:16: error: vars.server has a password in plain text\n"
       "  hint: write \"${env:NAME}\" in its place and set it in the environment: a recipe is copied into every run\n"},
      {"vars: {a: \"ssh://git@host/x\", b: \"http://host/?q=a@b:c\", c: \"http://host:80/a@b\"}", ""},
      // Several at once, in the order of the file.
      {"seed: x\ntraining: {ratio: 2, sizes: 1}",
       "r.yaml:2:7: error: seed must be an integer, got \"x\"\n"
       "r.yaml:3:19: error: training.ratio must be between 0 and 1, got 2\n"
       "r.yaml:3:29: error: training.sizes must be a list of integers, got 1\n"
       "  hint: write a list, such as [1]\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.yaml) {
      CHECK(checked("optimizer: {type: adam, lr: 1}\n" + std::string(c.yaml) + "\n").messages == c.messages);
    }
  }
}

TEST_CASE("a component is found by its type, and only its own keys are checked", "[registry][validate]") {
  struct Case {
    const char* yaml;
    const char* messages;
  };
  static constexpr Case cases[] = {
      {"optimizer: adam", ""},
      {"optimizer: {type: sgd, lr: 1, no_decay: bias}", ""},
      {"optimizer: {type: sgd, lr: 1, nesterov: true, momentum: 0.9}", ""},
      {"seed: 1", "r.yaml: error: a recipe needs the key optimizer\n  hint: `roux list optimizer` lists the choices\n"},
      {"optimizer: sgd", "r.yaml:1:12: error: optimizer (sgd) needs the key lr\n  hint: lr: Size of a step\n"},
      {"optimizer: adamw",
       "r.yaml:1:12: error: no optimizer is called \"adamw\"\n  hint: did you mean \"adam\"? `roux list optimizer` "
       "shows all 2\n"},
      {"optimizer: {type: lion, beta: 1}",
       "r.yaml:1:19: error: no optimizer is called \"lion\"\n  hint: `roux list optimizer` shows all 2\n"},
      {"optimizer: {lr: 1}", "r.yaml:1:12: error: optimizer needs the key type\n  hint: set type: adam or sgd\n"},
      {"optimizer: {name: SGD, lr: 1}",
       "r.yaml:1:13: error: optimizer needs the key type\n  hint: here an optimizer is named by type: write type: "
       "sgd\n"},
      {"optimizer: {_target_: torch.optim.Adam}",
       "r.yaml:1:13: error: optimizer needs the key type\n  hint: here an optimizer is named by type: write type: "
       "adam\n"},
      {"optimizer: {sgd: {lr: 1}}",
       "r.yaml:1:13: error: optimizer needs the key type\n  hint: write {type: sgd, ...} with its keys beside type\n"},
      {"optimizer: {type: [sgd]}",
       "r.yaml:1:19: error: optimizer.type must be the name of an optimizer, got a list\n  hint: `roux list optimizer` "
       "shows all 2\n"},
      {"optimizer: 3",
       "r.yaml:1:12: error: optimizer must be the name of an optimizer or a mapping with its type, got 3\n"
       "  hint: write optimizer: {type: NAME}; `roux list optimizer` shows all 2\n"},
      {"optimizer: {type: sgd, lr: 1, amsgrad: true}",
       "r.yaml:1:31: error: optimizer (sgd) has no key \"amsgrad\"\n  hint: amsgrad is a key of adam\n"},
      {"optimizer: {type: sgd, lr: 1, max_steps: 3}",
       "r.yaml:1:31: error: optimizer (sgd) has no key \"max_steps\"\n  hint: max_steps belongs under training\n"},
      {"optimizer: {type: sgd, lr: 1, nesterov: true}",
       "r.yaml:1:41: error: nesterov needs a momentum, which is 0.0\n  hint: give momentum: 0.9\n"},
      // One complaint: a rule says nothing about a value that was refused.
      {"optimizer: {type: sgd, lr: 1, nesterov: true, momentum: x}",
       "r.yaml:1:57: error: optimizer.momentum must be a number, got \"x\"\n"},
      {"optimizer: adam\ntrackers: {type: wandb}",
       "r.yaml:2:11: error: trackers must be a list, got a mapping\n  hint: begin it with a dash: - type: ...\n"},
      {"optimizer: adam\ntrackers: [wandb, {type: mlfow}]",
       "r.yaml:2:26: error: no tracker is called \"mlfow\"\n  hint: `roux list tracker` shows all 1\n"},
      {"[1, 2]",
       "r.yaml:1:1: error: a recipe is a mapping of keys, got a list\n  hint: remove the dashes at the top level\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.yaml) { CHECK(checked(std::string(c.yaml) + "\n").messages == c.messages); }
  }
}

TEST_CASE("a valid recipe is returned whole", "[registry][validate]") {
  const Checked result = checked("seed: 1e3\noptimizer: sgd\nlearning_rate: 1\ntraining: {path: a.txt}\n");
  CHECK(result.messages == "r.yaml:3:1: notice: learning_rate is read as optimizer.lr\n");
  CHECK(
      core::to_json(result.root, -1) ==
      R"({"recipe_version": 1, "vars": {}, "seed": 1000, )"
      R"("optimizer": {"type": "sgd", "lr": 1.0, "momentum": 0.0, "nesterov": false, "no_decay": []}, )"
      R"("precision": {"mode": "32-true"}, "training": {"max_steps": null, "ratio": 0.5, "factor": 1.0, "norm": 2.0, )"
      R"("flag": true, "name": "run", "note": null, "every": null, "limit": null, "cache": null, "path": ["a.txt"], )"
      R"("sizes": [1], "pair": [1.0, 2.0], "groups": [], "a_steps": 0, "a_ratio": null}, "trackers": []})");
  CHECK(tests::history_of(*result.root.at_path("optimizer.lr")) == std::vector<std::string>{"alias learning_rate"});
  CHECK(result.root.at_path("optimizer.momentum")->location().text() == "default of optimizer/sgd");
  CHECK(result.root.at_path("seed")->scalar_text() == "1e3");
}

TEST_CASE("a secret shows as its reference", "[registry][validate]") {
  REQUIRE(setenv("ROUX_TEST_SECRET", "hunter2", 1) == 0);
  resolve::Recipe recipe;
  const Checked result = checked(
      "optimizer: adam\nvars: {a: \"${env:ROUX_TEST_SECRET}\"}\n"
      "trackers: [{type: wandb, api_key: \"${env:ROUX_TEST_SECRET}\"}]\n");
  CHECK(result.messages == "");
  recipe.root = result.root;
  CHECK(recipe.at("trackers[0].api_key").as_string() == "hunter2");
  CHECK(recipe.resolved_json().find("hunter2") == std::string::npos);
  CHECK(recipe.resolved().at_path("trackers[0].api_key")->as_string() == "${env:ROUX_TEST_SECRET}");
  CHECK(recipe.resolved().at_path("vars.a")->as_string() == "${env:ROUX_TEST_SECRET}");
}

TEST_CASE("a password in a URL shows as its reference", "[registry][validate]") {
  REQUIRE(setenv("ROUX_TEST_SECRET", "hunter2", 1) == 0);
  REQUIRE(setenv("ROUX_TEST_SERVER", "http://me:hunter2@host", 1) == 0);
  for (const char* written : {"http://me:${env:ROUX_TEST_SECRET}@host/a", "${env:ROUX_TEST_SERVER}"}) {
    INFO(written);
    resolve::Recipe recipe;
    const Checked result = checked("optimizer: adam\ntraining: {note: \"" + std::string(written) + "\"}\n");
    CHECK(result.messages == "");
    recipe.root = result.root;
    CHECK(recipe.at("training.note").as_string().starts_with("http://me:hunter2@host"));
    CHECK(recipe.resolved().at_path("training.note")->as_string() == written);
  }
  CHECK(
      checked("optimizer: adam\ntraining: {note: \"http://me:word@${env:ROUX_TEST_SECRET}\"}\n").messages ==
      "r.yaml:2:18: error: training.note has a password in plain text\n"
      "  hint: write \"${env:NAME}\" in its place and set it in the environment: a recipe is copied into every run\n");
  unsetenv("ROUX_TEST_SERVER");
}

TEST_CASE("the hash tells apart what trains differently", "[registry][load]") {
  const auto hash = [](const std::string& yaml) {
    resolve::Recipe recipe;
    recipe.root = checked(yaml).root;
    return recipe.hash();
  };
  const std::string base = hash("optimizer: {type: adam, lr: 1}\n");
  CHECK(base.size() == 16);
  CHECK(hash("seed: 1\noptimizer: {lr: 1.0, type: adam}\n") == base);
  CHECK(hash("vars: {a: 1}\noptimizer: {lr: 1e0, type: adam}\n") == base);
  CHECK(hash("seed: 2\noptimizer: {type: adam, lr: 1}\n") != base);
  CHECK(hash("optimizer: {type: sgd, lr: 1}\n") != base);
}

}  // namespace
}  // namespace runner::registry
