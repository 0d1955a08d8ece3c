#include "runner/registry/registry.h"

#include <catch2/catch.hpp>

#include "generated/section/checkpoint.h"
#include "generated/section/optimizer_common.h"
#include "generated/section/training.h"
#include "runner/registry/validate.h"

using runner::core::Diagnostics;
using runner::core::Node;
using runner::registry::Embedded;
using runner::registry::Registry;

namespace {

constexpr const char* kKinds = R"([
  {"kind": "optimizer", "title": "Optimizers", "namespace": "o", "header": "o.h", "product": "O", "layer": "engine"},
  {"kind": "loss", "title": "Losses", "namespace": "l", "header": "l.h", "product": "L", "layer": "engine"}])";
constexpr const char* kAdamw = R"({"title": "AdamW", "description": "D.", "examples": ["adamw"]})";
constexpr const char* kMse = R"({"title": "Squares", "description": "D.", "examples": ["mse"]})";
constexpr const char* kAliases = R"({"components": [{"kind": "loss", "word": "mean_squared_error", "name": "mse"},
                                                    {"kind": "loss", "word": "nll", "name": "cross_entropy"}]})";

Embedded small_tables() {
  Embedded embedded;
  embedded.kinds_json = kKinds;
  embedded.aliases_json = kAliases;
  embedded.fragments = {{"optimizer", "adamw", kAdamw}, {"loss", "mse", kMse}};
  return embedded;
}

std::string said(Diagnostics& diagnostics) { return render(diagnostics, {.color = false, .excerpts = false}); }

}  // namespace

TEST_CASE("the registry finds what is embedded", "[registry]") {
  const Registry registry(small_tables());
  REQUIRE(registry.kinds().size() == 2);
  CHECK(registry.find_kind("loss")->product == "L");
  CHECK(registry.find_kind("model") == nullptr);
  CHECK(registry.names("optimizer") == std::vector<std::string>{"adamw"});
  CHECK(registry.names("model").empty());
  const auto* fragment = registry.find("optimizer", "adamw");
  REQUIRE(fragment);
  CHECK(fragment->title == "AdamW");
  CHECK(registry.find("optimizer", "adamw") == fragment);
  CHECK(registry.find("optimizer", "mse") == nullptr);
  CHECK(registry.common("optimizer") == nullptr);
}

TEST_CASE("the registry suggests the name that was meant", "[registry]") {
  const Registry registry(small_tables());
  struct Case {
    const char* kind;
    const char* written;
    const char* meant;
  };
  static constexpr Case cases[] = {
      {"optimizer", "adamW", "adamw"},
      {"optimizer", "adam", "adamw"},
      {"optimizer", "torch.optim.AdamW", "adamw"},
      {"loss", "mean_squared_error", "mse"},
      {"loss", "MeanSquaredError", "mse"},
      {"loss", "nll", ""},  // leads to a component that these tables do not have
      {"optimizer", "lamb_of_god", ""},
      {"model", "adamw", ""},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.kind << "/" << c.written) { CHECK(registry.suggest(c.kind, c.written) == c.meant); }
  }
}

TEST_CASE("a plugin's fragment joins the tables while the program runs", "[registry]") {
  Registry registry(small_tables());
  Diagnostics diagnostics;
  const std::string lion = R"({"title": "Lion", "description": "D.",
      "properties": {"lr": {"type": "number", "default": 1e-4, "description": "Rate."}}, "examples": ["lion"]})";
  REQUIRE(registry.add("optimizer", "lion", "plugin/lion.json", lion, diagnostics));
  CHECK(said(diagnostics) == "");
  CHECK(registry.names("optimizer") == std::vector<std::string>{"adamw", "lion"});
  CHECK(registry.find("optimizer", "lion")->find("lr")->default_value->as_double() == 1e-4);

  SECTION("a name is given once") {
    CHECK_FALSE(registry.add("optimizer", "lion", "other/lion.json", lion, diagnostics));
    CHECK_FALSE(registry.add("optimizer", "adamw", "plugin/adamw.json",
                             R"({"title": "T", "description": "D.", "examples": ["adamw"]})", diagnostics));
    CHECK(said(diagnostics) ==
          "other/lion.json: error: optimizer/lion is already defined in plugin/lion.json\n"
          "  hint: use another component name\n"
          "plugin/adamw.json: error: optimizer/adamw is already defined in roux itself\n"
          "  hint: use another component name\n");
  }
  SECTION("a kind must be there") {
    CHECK_FALSE(registry.add("optimiser", "lion", "plugin/lion.json", lion, diagnostics));
    CHECK(said(diagnostics) ==
          "plugin/lion.json: error: no kind of component is called \"optimiser\"\n"
          "  hint: did you mean \"optimizer\"?\n");
  }
  SECTION("a broken fragment is refused whole") {
    CHECK_FALSE(registry.add("optimizer", "tiger", "plugin/tiger.json", R"({"title": "T"})", diagnostics));
    CHECK(registry.find("optimizer", "tiger") == nullptr);
    CHECK(said(diagnostics) ==
          "plugin/tiger.json:1:1: error: the keyword description is missing\n"
          "plugin/tiger.json:1:1: error: a component needs at least one entry in examples\n");
  }
}

TEST_CASE("every example of every fragment validates", "[registry]") {
  const Registry& registry = Registry::builtin();
  for (const auto& kind : registry.kinds()) {
    for (const std::string& name : registry.names(kind.name)) {
      DYNAMIC_SECTION(kind.name << "/" << name) {
        const auto* fragment = registry.find(kind.name, name);
        CHECK_FALSE(fragment->examples.empty());
        for (const Node& example : fragment->examples) {
          Diagnostics diagnostics;
          runner::registry::validate_component(example, kind.name, kind.name, registry, diagnostics);
          CHECK(render(diagnostics) == "");
        }
      }
    }
  }
}

TEST_CASE("a generated parser fills the Config", "[registry][config]") {
  Node block = Node::mapping();
  block.set("max_steps", Node::integer(100));
  block.set("max_time", Node::string("1h30min"));
  block.set("clip_grad_norm", Node::integer(1));
  block.set("micro_batch_size", Node::null());
  const auto training = runner::sections::training::parse_config(block);
  CHECK(training.max_steps == 100);
  CHECK(training.max_time == 5400.0);
  CHECK(training.clip_grad_norm == 1.0);
  CHECK_FALSE(training.micro_batch_size.has_value());
  CHECK(training.norm_type == 2.0);

  Node checkpoint = Node::mapping();
  checkpoint.set("mode", Node::string("max"));
  checkpoint.set("save_steps", Node::string("2ep"));
  const auto config = runner::sections::checkpoint::parse_config(checkpoint);
  CHECK(config.mode == runner::sections::checkpoint::Mode::kMax);
  CHECK(to_text(config.mode.value()) == "max");
  CHECK(config.save_steps == runner::core::Interval{runner::core::Interval::Unit::kEpochs, 2.0});
  CHECK(config.resume_from_checkpoint == "auto");

  Node group = Node::mapping();
  group.set("pattern", Node::string("*.bias"));  // x-single
  group.set("lr", Node::floating(0.5));
  Node optimizer = Node::mapping();
  optimizer.set("param_groups", Node::sequence({group}));
  const auto common = runner::sections::optimizer_common::parse_config(optimizer);
  REQUIRE(common.param_groups.size() == 1);
  CHECK(common.param_groups[0].pattern == std::vector<std::string>{"*.bias"});
  CHECK(common.param_groups[0].lr == 0.5);
  CHECK_FALSE(common.param_groups[0].weight_decay.has_value());
  CHECK(common.no_decay.empty());
}
