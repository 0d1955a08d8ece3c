#include "runner/cli/local_device.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "runner/registry/registry.h"
#include "runner/resolve/load.h"

namespace runner::cli {
namespace {

const std::string kRecipe =
    "model: {type: mlp, hidden: [4]}\nloss: mse\noptimizer: {type: sgd, lr: 0.1}\n"
    "data: {train: {type: synthetic, task: regression}}\ntraining: {max_steps: 2, micro_batch_size: 4}\n";

/// The device, or ""; then what was said.
std::string chosen(const std::string& more, int processes, core::Result<int> gpus, bool shares_process = false,
                   bool has_driver = false, bool may_take_all = true) {
  const auto source =
      std::make_shared<const core::Source>(core::Source{"r.yaml", kRecipe + more + "\n", core::Source::Kind::kFile});
  core::Diagnostics diagnostics;
  const auto recipe = resolve::load_recipe_text(source, {}, registry::Registry::builtin(), diagnostics);
  INFO(core::render(diagnostics, {}));
  REQUIRE(recipe);
  core::Diagnostics said;
  const auto device =
      choose_device(*recipe, {processes, shares_process, has_driver, may_take_all, [&] { return gpus; }}, said);
  std::string text = device.value_or("");
  for (const core::Diagnostic& diagnostic : said.all()) {
    text += "\n" + diagnostic.message + " (" + diagnostic.hint + ")";
  }
  return text;
}

const core::Result<int> kNone = core::Failure{"this machine has no NVIDIA driver", "install it"};

}  // namespace

TEST_CASE("the device follows from the recipe and the machine", "[cli][device]") {
  struct Case {
    const char *name, *recipe;
    int processes;
    core::Result<int> gpus;
    const char* chosen;
  };
  const Case cases[] = {
      {"no driver", "", 1, kNone, "cpu"},
      {"a driver without a GPU", "device: auto", 1, 0, "cpu"},
      {"one GPU", "", 1, 1, "cuda:0"},
      {"the CPU although there is a GPU", "device: cpu", 1, 1, "cpu"},
      {"several GPUs", "", 1, 4,
       "cuda:0\nthis machine has 4 GPUs, and one of them is used (--num-processes auto trains on all of them)"},
      {"a GPU for each process", "launch: {num_processes: 2}", 2, 2, "cuda"},
      {"processes without a GPU each", "launch: {num_processes: 2}", 2, 1,
       "cpu\ntraining on the CPU: 2 processes need a GPU each, but this machine has 1 GPU "
       "(use fewer processes, or write `device: cpu`)"},
      {"the first GPU", "device: cuda", 1, 2, "cuda:0"},
      {"the second GPU", "device: cuda:1", 1, 2, "cuda:1"},
      {"a GPU that is not there", "device: cuda:2", 1, 2,
       "\ndevice is cuda:2, but this machine has 2 GPUs (they are numbered from 0; CUDA_VISIBLE_DEVICES may hide "
       "some)"},
      {"a GPU without a driver", "device: cuda", 1, kNone,
       "\ndevice is cuda, but this machine has no NVIDIA driver (install it)"},
      {"fewer GPUs than processes", "device: cuda\nlaunch: {num_processes: 3}", 3, 2,
       "\n3 processes need a GPU each, but this machine has 2 GPUs "
       "(use fewer processes, or `device: cpu`; CUDA_VISIBLE_DEVICES may hide some GPUs)"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(chosen(c.recipe, c.processes, c.gpus) == c.chosen); }
  }
}

TEST_CASE("a GPU that cannot be used is named", "[cli][device]") {
  const core::Result<int> unsupported = core::Failure{"this roux is built without GPU support", "build it"};
  CHECK(chosen("", 1, unsupported, false, true) ==
        "cpu\ntraining on the CPU: this roux is built without GPU support (build it)");
  CHECK(chosen("device: cpu", 1, unsupported, false, true) == "cpu");
}

TEST_CASE("only a run that could use the other GPUs mentions them", "[cli][device]") {
  CHECK(chosen("", 1, 4, false, true, false) == "cuda:0");
}

TEST_CASE("a trial that shares its process trains on the CPU", "[cli][device]") {
  CHECK(chosen("", 1, 1, true) == "cpu");
  CHECK(chosen("device: cuda", 1, 1, true) ==
        "\ndevice is cuda, but the trials of this sweep share a process that uses the CPU "
        "(set `sweep: {isolation: exec}`)");
}

}  // namespace runner::cli
