// What plan tries where a training does not fit.

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/text/text.h"
#include "runner/engine/memory/remedies.h"
#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"

namespace runner::engine {
namespace {

resolve::Recipe recipe_of(const std::string& changed) {
  const auto source = std::make_shared<core::Source>();
  source->name = "tried";
  source->text =
      "model: {type: mlp, hidden: [8]}\ndata: {train: {type: synthetic, num_samples: 64}}\nloss: mse\n" + changed;
  core::Diagnostics diagnostics;
  const auto recipe =
      resolve::load_recipe_text(source, recipe::ComposeOptions{}, registry::Registry::builtin(), diagnostics);
  INFO(render(diagnostics));
  REQUIRE(recipe.has_value());
  return *recipe;
}

std::string text_of(const Changes& changes) { return core::joined(changes, " "); }

/// Which changes are said to fit where these are what each set of changes needs, and 100 fit.
std::vector<std::string> found(const std::string& recipe, bool spreads,
                               const std::map<std::string, std::int64_t>& needs) {
  const TryChanges attempt = [&](const Changes& changes) -> std::optional<Remedy> {
    const auto known = needs.find(text_of(changes));
    if (known == needs.end()) return std::nullopt;
    return Remedy{changes, known->second <= 100, known->second};
  };
  const Remedies remedies = find_remedies(recipe_of(recipe), spreads, attempt);
  std::vector<std::string> all;
  for (const Remedy& one : remedies.fitting) all.push_back(text_of(one.changes));
  CHECK(remedies.least.has_value() == all.empty());
  return all;
}

constexpr const char* kAdam = "optimizer: {type: adamw, lr: 0.1}\ntraining: {max_steps: 2, micro_batch_size: 8}\n";
constexpr const char* kHalf = "training.micro_batch_size=4 training.gradient_accumulation_steps=2";
constexpr const char* kQuarter = "training.micro_batch_size=2 training.gradient_accumulation_steps=4";
constexpr const char* kOne = "training.micro_batch_size=1 training.gradient_accumulation_steps=8";

TEST_CASE("the largest micro-batch that fits is named, and what else fits by itself", "[engine]") {
  CHECK(found(kAdam, false,
              {{kOne, 20},
               {kQuarter, 90},
               {kHalf, 110},
               {"activation_checkpointing=full", 80},
               {"optimizer.type=adamw_8bit", 130},
               {"precision=bf16-true", 100}}) ==
        std::vector<std::string>{kQuarter, "activation_checkpointing=full", "precision=bf16-true"});
}

TEST_CASE("changes are tried together where none is enough, and not those that are not valid", "[engine]") {
  const std::string both = std::string(kOne) + " activation_checkpointing=full";
  CHECK(found(kAdam, false,
              {{kOne, 120},
               {"activation_checkpointing=full", 110},
               {both, 105},
               {both + " optimizer.type=adamw_8bit", 99},
               {both + " precision=bf16-true", 50}}) == std::vector<std::string>{both + " optimizer.type=adamw_8bit"});
}

TEST_CASE("sharding is tried where processes have memory of their own, which share a step's samples", "[engine]") {
  const std::string one_each = " training.micro_batch_size=1 training.gradient_accumulation_steps=",
                    over_2 = "launch.num_processes=2 parallelism.shard=parameters",
                    over_4 = "launch.num_processes=4 parallelism.shard=parameters";
  const std::string whole = " training.micro_batch_size=4 training.gradient_accumulation_steps=1",
                    half = " training.micro_batch_size=2 training.gradient_accumulation_steps=1";
  CHECK(found(kAdam, true, {{over_2 + whole, 120}, {over_4 + half, 70}}) == std::vector<std::string>{over_4 + half});
  const std::string recomputes = " activation_checkpointing=full";
  CHECK(found(kAdam, true, {{over_2 + recomputes + one_each + "4", 120}, {over_4 + recomputes + one_each + "2", 80}}) ==
        std::vector<std::string>{over_4 + recomputes + one_each + "2"});
  const Remedies none = find_remedies(recipe_of(kAdam), false, [&](const Changes&) { return std::nullopt; });
  CHECK(none.fitting.empty());
  CHECK(!none.least.has_value());
}

TEST_CASE("the change that needs the least is named where nothing fits", "[engine]") {
  const Remedies remedies = find_remedies(recipe_of(kAdam), false, [](const Changes& changes) -> std::optional<Remedy> {
    const bool is_8 = text_of(changes) == "optimizer.type=adamw_8bit";
    return Remedy{changes, false, is_8 ? 300 : 400};
  });
  CHECK(remedies.fitting.empty());
  REQUIRE(remedies.least.has_value());
  CHECK(text_of(remedies.least->changes) == "optimizer.type=adamw_8bit");
}

}  // namespace
}  // namespace runner::engine
