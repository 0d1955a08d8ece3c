#include "runner/core/path.h"

#include <catch2/catch.hpp>

using namespace runner::core;

TEST_CASE("a path is read and written the same", "[core][path]") {
  for (const char* text : {"a", "training.max_steps", "model.layers[2].p", "a[0][1]", "data[\"my.set\"].path",
                           "[\"a=b\"].c", R"(sweep.parameters["vars[\"a.b\"]"].q)", R"(["a\\.b"])"}) {
    CAPTURE(text);
    CHECK(path_text(parse_path(text).value()) == text);
  }
}

TEST_CASE("errors in a path are reported", "[core][path]") {
  struct Case {
    const char* text;
    const char* message;
  };
  static constexpr Case cases[] = {
      {"", "the path is empty"},
      {".a", "\".a\" is not a path: it begins with a dot"},
      {"a.", "\"a.\" is not a path: it ends with a dot"},
      {"a..b", "\"a..b\" is not a path: two dots follow each other"},
      {"a[", "\"a[\" is not a path: [ has no closing ]"},
      {"a[]", "\"a[]\" is not a path: [] has no position"},
      {"a[x]", "\"a[x]\" is not a path: [x] is not a position in a list"},
      {"a[-1]", "\"a[-1]\" is not a path: [-1] is not a position in a list"},
      {"a[1]b", "\"a[1]b\" is not a path: expected . or [ after ]"},
      {"a[99999999]", "\"a[99999999]\" is not a path: [99999999] is too large"},
      {"a.[1]", "\"a.[1]\" is not a path: a dot stands before ["},
      {"a[\"b", "\"a[\"b\" is not a path: [\" has no closing \"]"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(parse_path(c.text).failure().message == c.message);
  }
}
