// Sizes of batches that results depend on: from what a recipe writes, and from what a run has recorded.

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "runner/registry/registry.h"
#include "runner/resolve/load.h"

namespace runner::resolve {
namespace {

constexpr const char* kRest =
    "model: {type: mlp, hidden: [8]}\n"
    "data: {train: {type: synthetic, num_samples: 64}, val: {type: synthetic, num_samples: 40}}\n"
    "loss: mse\n"
    "optimizer: sgd\n"
    "weight_averaging: {type: swa, start_step: 1}\n";

struct Read {
  std::optional<Recipe> recipe;
  std::string messages;

  std::string size(const char* path) const {
    const core::Node* value = recipe->root.at_path(path);
    return value == nullptr || value->is_null() ? "null" : value->scalar_text();
  }
  std::string counted() const { return size("eval.counted_batch_size"); }
  std::string norms() const { return size("weight_averaging.bn_batch_size"); }
};

Read read(const std::string& text, const std::vector<std::string>& sets = {}, const std::string& name = "r.yaml") {
  recipe::ComposeOptions options;
  for (const std::string& set : sets) options.overrides.push_back({recipe::Override::Kind::kSet, set});
  core::Diagnostics diagnostics;
  Read made;
  made.recipe = load_recipe_text(std::make_shared<core::Source>(core::Source{name, text, core::Source::Kind::kFile}),
                                 options, registry::Registry::builtin(), diagnostics);
  core::RenderOptions plain;
  plain.excerpts = false;
  made.messages = core::render(diagnostics, plain);
  INFO(made.messages);
  REQUIRE(made.recipe.has_value());
  return made;
}

std::string without(std::string json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\":"), begin = json.rfind('\n', at);
  REQUIRE(at != std::string::npos);
  const std::size_t end = json.find('\n', at);
  json.erase(begin, end - begin);
  // The last one of its block leaves a comma behind.
  const std::size_t next = json.find_first_not_of(" \n", begin);
  if (json[next] == '}' && json[begin - 1] == ',') json.erase(begin - 1, 1);
  return json;
}

}  // namespace

TEST_CASE("batches that results depend on have a size that the recipe writes", "[resolve][batches]") {
  struct Case {
    const char* sizes;
    const char* counted;
    const char* norms;
  };
  static constexpr Case cases[] = {
      {"training: {max_steps: 1, micro_batch_size: 4}", "4", "4"},
      {"training: {max_steps: 1, micro_batch_size: 4, gradient_accumulation_steps: 2}", "4", "4"},
      {"training: {max_steps: 1, global_batch_size: 16}", "16", "16"},
      {"training: {max_steps: 1, global_batch_size: 16, gradient_accumulation_steps: 4}", "16", "16"},
      {"training: {max_steps: 1, global_batch_size: 16, micro_batch_size: 4}", "16", "16"},
      {"training: {max_steps: 1, global_batch_size: 16}\neval: {micro_batch_size: 5}", "5", "16"},
      {"training: {max_steps: 1, micro_batch_size: 4}\neval: {micro_batch_size: 5, counted_batch_size: 7}", "7", "4"},
      {"training: {max_steps: 1, micro_batch_size: 8}\nloader: {split_batches: true}", "8", "8"},
      {"deepspeed: {train_batch_size: 16}\ntraining: {max_steps: 1}", "16", "16"},
      {"deepspeed: {train_micro_batch_size_per_gpu: 4}\ntraining: {max_steps: 1}", "4", "4"},
  };
  for (const Case& one : cases) {
    for (const char* processes : {"1", "2", "4"}) {
      INFO(one.sizes << " on " << processes);
      const Read made = read(std::string(kRest) + one.sizes + "\n", {std::string("launch.num_processes=") + processes});
      CHECK(made.counted() == one.counted);
      CHECK(made.norms() == one.norms);
    }
  }
}

TEST_CASE("a run's recording keeps the size of its batches, whatever changes", "[resolve][batches]") {
  const std::string text = std::string(kRest) +
                           "training: {max_steps: 1, micro_batch_size: 4}\n"
                           "launch: {num_processes: 2}\neval: {max_batches: 3}\n";
  const std::string recorded = read(text).recipe->resolved_json();
  for (const std::vector<std::string>& sets :
       std::vector<std::vector<std::string>>{{},
                                             {"launch.num_processes=4", "training.gradient_accumulation_steps=null"},
                                             {"eval.micro_batch_size=2"},
                                             {"eval={max_batches: 5}"},
                                             {"weight_averaging={type: swa, start_step: 2}"}}) {
    const Read made = read(recorded, sets, "runs/a-1/resolved.json");
    INFO((sets.empty() ? "" : sets.front()));
    CHECK(made.counted() == "4");
    CHECK(made.norms() == "4");
    CHECK(made.messages.empty());
  }
  // Elsewhere the global batch looks as if it were written.
  CHECK(read(without(without(recorded, "counted_batch_size"), "bn_batch_size")).counted() == "8");
}

TEST_CASE("an earlier version's recording keeps its micro-batches and says so", "[resolve][batches]") {
  const auto earlier = [](const std::string& sizes) {
    const std::string json = read(kRest + sizes).recipe->resolved_json();
    return without(without(json, "counted_batch_size"), "bn_batch_size");
  };
  const std::string two = "launch: {num_processes: 2}\neval: {max_batches: 3}\n";
  const Read divided = read(earlier("training: {max_steps: 1, global_batch_size: 16}\n" + two), {}, "a/resolved.json");
  CHECK(divided.counted() == "8");
  CHECK(divided.norms() == "8");
  CHECK(divided.messages.find("resolved.json") != std::string::npos);
  CHECK(divided.messages.find(
            "notice: the run was recorded by an earlier roux: eval.max_batches counts its micro-batches "
            "of 8 samples\n  hint: eval.counted_batch_size sets what it counts\n") != std::string::npos);
  const Read split =
      read(earlier("training: {max_steps: 1, micro_batch_size: 8}\nloader: {split_batches: true}\n" + two), {},
           "a/resolved.json");
  CHECK(split.counted() == "4");
  CHECK(split.norms() == "4");
  const Read own = read(earlier("training: {max_steps: 1, micro_batch_size: 8}\neval: {micro_batch_size: 3}\n"), {},
                        "a/resolved.json");
  CHECK(own.counted() == "3");
  CHECK(own.norms() == "8");
  CHECK(own.messages.empty());
}

TEST_CASE("the hash has the size of the batches only where results differ from those of micro-batches",
          "[resolve][batches][hash]") {
  const auto hash = [](const std::string& sizes, const std::vector<std::string>& sets = {}) {
    return read(kRest + sizes, sets).recipe->hash();
  };
  const std::string micro = "training: {max_steps: 1, micro_batch_size: 8}\neval: {max_batches: 2}\n";
  CHECK(hash(micro) == hash(micro, {"eval.counted_batch_size=8", "weight_averaging.bn_batch_size=8"}));
  CHECK(hash(micro) != hash(micro, {"eval.counted_batch_size=4"}));
  CHECK(hash(micro) != hash(micro, {"weight_averaging.bn_batch_size=4"}));
  CHECK(hash(micro, {"eval.max_batches=null"}) == hash(micro, {"eval.max_batches=null", "eval.counted_batch_size=4"}));
}

}  // namespace runner::resolve
