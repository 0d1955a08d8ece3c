// No rule, fix, secret or hash depends on the wording of a hint or a history: all of them are reworded at random.
#include "runner/core/text/wording.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runner/core/platform/files.h"
#include "runner/registry/registry.h"
#include "runner/resolve/changes.h"
#include "runner/resolve/corrections.h"
#include "runner/resolve/load.h"
#include "tests/support/sampling.h"
#include "tests/support/temp_dir.h"

namespace runner::resolve {
namespace {

namespace fs = std::filesystem;

/// Words that rules once looked for, whole or with their letters mixed; the same for the same text, which is said once.
std::string at_random(const std::string& text) {
  static const std::string kWords[] = {"default of x",
                                       "secret",
                                       "refused",
                                       "auto: one",
                                       "computed from training",
                                       "${env:HOME}",
                                       "--set-file a",
                                       "adapter: a",
                                       "hf://a/b",
                                       "did you mean \"mlp\"?",
                                       "write it without quotes: 3"};
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(text)) ^ tests::seed());
  std::string other = kWords[random() % std::size(kWords)];
  if (random() % 2 == 0) std::shuffle(other.begin(), other.end(), random);
  return other + std::to_string(random() % 1000);
}

class Reworded {
 public:
  Reworded() { core::reword_for_test(at_random); }
  ~Reworded() { core::reword_for_test(nullptr); }
};

/// All that a recipe comes to, without the words.
std::vector<std::string> outcome(const std::string& path, const recipe::ComposeOptions& options) {
  const registry::Registry& registry = registry::Registry::builtin();
  std::vector<std::string> said;
  core::Diagnostics diagnostics;
  const std::optional<Recipe> recipe = load_recipe(path, options, registry, diagnostics);
  for (const core::Diagnostic& one : diagnostics.all()) {
    std::string line = std::to_string(static_cast<int>(one.severity)) + " " + one.location.text() + ": " + one.message;
    if (one.fix) line += " -> " + one.fix->location.text() + ": " + one.fix->text;
    said.push_back(line + (one.hint.empty() ? "" : ", hint"));
  }
  if (recipe) {
    said.push_back(recipe->hash(registry));
    said.push_back(recipe->resolved_json());
    for (const char* size : {"training.micro_batch_size", "launch.num_processes"})
      said.push_back(recipe->was_automatic(size) ? "automatic" : "written");
    for (const Change& change : list_changes(core::Node::mapping(), recipe->root)) said.push_back(change.path);
  }
  const CorrectedRecipe fixed = correct_recipe(path, core::read_file(path, 1 << 20).value(), options, registry);
  said.push_back(fixed.text);
  return said;
}

void expect_same(const std::string& path, const recipe::ComposeOptions& options = {}) {
  INFO(path);
  const std::vector<std::string> plain = outcome(path, options);
  const Reworded reworded;
  CHECK(outcome(path, options) == plain);
}

std::vector<std::string> recipes_below(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TEST_CASE("recipes with mistakes mean the same in other words", "[registry][wording]") {
  const std::vector<std::string> paths = recipes_below("tests/golden/bad");
  REQUIRE(paths.size() > 200);
  for (const std::string& path : paths) expect_same(path);
}

TEST_CASE("recipes that are right mean the same in other words", "[registry][wording]") {
  for (const std::string& path : recipes_below("recipes")) expect_same(path);
}

TEST_CASE("secrets, flags, references and words for numbers mean the same in other words", "[registry][wording]") {
  const tests::TempDir dir;
  ::setenv("ROUX_TEST_WORDING", "hidden-1234", 1);
  ::setenv("ROUX_TEST_STEPS", "7", 1);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(dir / name) << text;
    return dir / name;
  };
  const std::string common =
      "recipe_version: 1\nmodel: {type: mlp, hidden: [4]}\nloss: mse\n"
      "data: {train: {type: synthetic, task: regression, num_samples: 64}}\n";
  const std::string base = write("base.yaml", common +
                                                  "optimizer: {type: sgd, learning_rate: ${vars.rate}}\n"
                                                  "vars: {rate: 0.1}\ntraining: {max_steps: 4}\n");
  const std::string tracked =
      write("tracked.yaml",
            "extends: base.yaml\ntrackers: [{type: comet_ml, api_key: \"${env:ROUX_TEST_WORDING}\"}]\n"
            "vars: {key: \"${env:ROUX_TEST_WORDING}\", rate: 0.2}\n"
            "training: {max_steps: \"${env:ROUX_TEST_STEPS}\", micro_batch_size: 4, norm_type: .inf}\n");
  const std::string automatic =
      write("automatic.yaml", common +
                                  "optimizer: {type: sgd, lr: 0.1}\nlaunch: {num_processes: auto}\n"
                                  "training: {max_time: 5s, micro_batch_size: 4}\nlr_scheduler: {type: cosine}\n");
  const std::string set = write("set.yaml", "training: {max_steps: 9, global_batch_size: 8}\n");
  expect_same(base);
  expect_same(tracked);
  expect_same(automatic);
  recipe::ComposeOptions options;
  options.overrides = {{recipe::Override::Kind::kSetFile, set}, {recipe::Override::Kind::kSet, "optimizer.lr=0.3"}};
  expect_same(base, options);
}

}  // namespace runner::resolve
