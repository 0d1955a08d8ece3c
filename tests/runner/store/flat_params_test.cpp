#include "runner/store/flat_params.h"

#include <catch2/catch.hpp>
#include <string>

#include "runner/core/json.h"

namespace runner::store {

TEST_CASE("a value of a recipe is taken from its lines", "[store][index]") {
  const core::Node recipe = core::parse_json(R"({
    "optimizer": {"type": "adamw", "lr": 0.001, "betas": [0.9, 0.999]}, "seed": 7, "init": null,
    "vars": {"a\n\"b": "line\n\"seed\":8", "odd.key": true}})")
                                .value();
  const std::string leaves = pack_leaves(recipe);
  const auto copied = [&](const char* path) {
    core::Node found = core::Node::mapping();
    return LeafPath(path).copy(leaves, found) ? core::to_json(found, -1) : "nothing";
  };
  CHECK(copied("optimizer.lr") == R"({"optimizer": {"lr": 0.001}})");
  CHECK(copied("optimizer") == R"({"optimizer": {"type": "adamw"}})");
  CHECK(copied("optimizer.betas") == R"({"optimizer": {"betas": [0.9, 0.999]}})");
  CHECK(copied("seed") == R"({"seed": 7})");
  CHECK(copied("init") == R"({"init": null})");
  CHECK(copied(R"(vars["odd.key"])") == R"({"vars": {"odd.key": true}})");
  CHECK(copied("see") == "nothing");
  CHECK(copied("vars") == "nothing");
  CHECK(copied("optimizer.betas[0]") == "nothing");
  CHECK(copied("..") == "nothing");
}

}  // namespace runner::store
