#include "runner/core/node.h"

#include <catch2/catch.hpp>
#include <cmath>

using runner::core::Node;

namespace {

Node sample() {
  Node layer = Node::mapping();
  layer.set("type", Node::string("linear"));
  layer.set("p", Node::floating(0.5));
  Node model = Node::mapping();
  model.set("layers", Node::sequence({Node::string("relu"), layer}));
  Node root = Node::mapping();
  root.set("model", model);
  root.set("a.b", Node::integer(3));
  return root;
}

}  // namespace

TEST_CASE("a path leads to its value", "[core][node]") {
  const Node root = sample();
  CHECK(root.at_path("model.layers[1].p")->as_double() == 0.5);
  CHECK(root.at_path("model.layers[0]")->as_string() == "relu");
  CHECK(root.at_path("[\"a.b\"]")->as_integer() == 3);
  for (const char* nowhere :
       {"model.layers[2]", "model.layer", "model..layers", "model[0]", "", "model.layers[1].p.q"}) {
    CAPTURE(nowhere);
    CHECK(root.at_path(nowhere) == nullptr);
  }
}

TEST_CASE("a key that is set again keeps its position", "[core][node]") {
  Node node = Node::mapping();
  node.set("a", Node::integer(1));
  node.set("b", Node::integer(2));
  node.set("a", Node::integer(3));
  CHECK(to_json(node, -1) == R"({"a": 3, "b": 2})");
  CHECK(node.erase("a"));
  CHECK_FALSE(node.erase("a"));
}

TEST_CASE("values are the same whatever the order of keys, kinds differ", "[core][node]") {
  Node one = Node::mapping(), two = Node::mapping();
  one.set("a", Node::integer(1));
  one.set("b", Node::null());
  two.set("b", Node::null());
  two.set("a", Node::integer(1));
  CHECK(one.same_value(two));
  two.set("a", Node::floating(1.0));
  CHECK_FALSE(one.same_value(two));
}

TEST_CASE("text keeps the kind of every value", "[core][node]") {
  struct Case {
    Node node;
    const char* json;
    const char* yaml;
  };
  const Case cases[] = {
      {Node::floating(1.0), "1.0", "1.0\n"},
      {Node::floating(1e-4), "1e-4", "1e-4\n"},
      {Node::floating(1e300), "1e+300", "1e+300\n"},
      {Node::floating(HUGE_VAL), "\"inf\"", ".inf\n"},
      {Node::string("1.0"), "\"1.0\"", "\"1.0\"\n"},
      {Node::string("no"), "\"no\"", "no\n"},
      {Node::string(""), "\"\"", "\"\"\n"},
      {Node::string("a: b"), "\"a: b\"", "\"a: b\"\n"},
      {Node::string("- a"), "\"- a\"", "\"- a\"\n"},
      {Node::string("-90%:"), "\"-90%:\"", "\"-90%:\"\n"},
      {Node::string(":90%"), "\":90%\"", "\":90%\"\n"},
      {Node::string("a\nb\x01"), "\"a\\nb\\u0001\"", "\"a\\nb\\u0001\"\n"},
      {Node::string("caf\xC3\xA9"), "\"caf\xC3\xA9\"", "caf\xC3\xA9\n"},
      {Node::null(), "null", "null\n"},
      {Node::sequence(), "[]", "[]\n"},
      {Node::mapping(), "{}", "{}\n"},
      {Node::boolean(true), "true", "true\n"},
  };
  for (const Case& c : cases) {
    CHECK(to_json(c.node, -1) == c.json);
    CHECK(to_yaml(c.node) == c.yaml);
  }
}

TEST_CASE("YAML text is indented by two", "[core][node]") {
  CHECK(to_yaml(sample()) ==
        "model:\n"
        "  layers:\n"
        "    - relu\n"
        "    - type: linear\n"
        "      p: 0.5\n"
        "a.b: 3\n");
}
