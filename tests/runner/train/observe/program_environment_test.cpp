#include "runner/train/observe/program_environment.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"
#include "tests/support/process/variables.h"

namespace runner::train {
namespace {

core::Node recipe_of(const std::string& yaml) {
  core::Diagnostics diagnostics;
  const auto composed = recipe::compose_text(
      std::make_shared<core::Source>(core::Source{"r.yaml", yaml, core::Source::Kind::kFile}), {}, diagnostics);
  REQUIRE(composed.has_value());
  return registry::validate_recipe(composed->root, registry::Registry::builtin(), diagnostics);
}

}  // namespace

TEST_CASE("a program gets the variables of the training, but for secrets and the place among ranks",
          "[train][programs]") {
  const tests::Variables variables({
      {"ROUX_TEST_PLAIN", "a=b"},
      {"HF_TOKEN", "hf_x"},
      {"WANDB_API_KEY", "x"},
      {"AWS_SECRET_ACCESS_KEY", "x"},
      {"ROUX_TEST_DATABASE", "postgres://me:word@host/db"},
      {"ROUX_TEST_HOOK", "https://example.org/a"},
      {"ROUX_TEST_IN_VARS", "x"},
      {"RANK", "0"},
      {"WORLD_SIZE", "2"},
      {"OMPI_COMM_WORLD_RANK", "0"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_JOB_ID", "7"},
      {"ROUX_SUPERVISED", "1"},
      {"ROUX_REPORT_DESCRIPTOR", "5"},
  });
  const auto given =
      program_environment(recipe_of("vars: {a: \"${env:ROUX_TEST_IN_VARS}\", hook: \"${env:ROUX_TEST_HOOK}\"}\n"
                                    "run_name: \"${env:ROUX_TEST_PLAIN}\"\n"
                                    "trackers: [{type: webhook, secret_url: \"${vars.hook}\"}]\n"));
  std::string names;
  for (const auto& [name, value] : given) {
    if (variables.values().contains(name)) names += name + "=" + value + "|";
  }
  CHECK(names == "ROUX_TEST_IN_VARS=x|ROUX_TEST_PLAIN=a=b|SLURM_JOB_ID=7|");
  CHECK(given.contains("PATH"));
}

}  // namespace runner::train
