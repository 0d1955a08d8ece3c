#include "runner/recipe/key_finder.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

using runner::core::Location;
using runner::core::Source;

namespace {

std::shared_ptr<const Source> source_of(const std::string& name, const std::string& text, Source::Kind kind) {
  return std::make_shared<const Source>(Source{name, text, kind});
}

}  // namespace

TEST_CASE("the key of a location in a file is found", "[recipe][key_finder]") {
  const auto yaml = source_of("r.yaml", "loss: mse\nmodel:\n  layers: [{type: linear, in: 3}]\n", Source::Kind::kFile);
  struct Case {
    const char* name;
    int line, column, width;
    const char* key;
  };
  static constexpr Case cases[] = {
      {"a key", 2, 1, 5, "model"},
      {"the first key, which has the location of the whole", 1, 1, 4, ""},
      {"the first key of a block, which has its location", 3, 3, 6, "model"},
      {"its value", 1, 7, 3, "loss"},
      {"a key in an item of a list", 3, 27, 2, "model.layers[0].in"},
      {"its value", 3, 31, 1, "model.layers[0].in"},
      {"no key begins there", 3, 5, 1, ""},
      {"the file as a whole", 0, 0, 0, ""},
  };
  runner::recipe::KeyFinder finder;
  for (const Case& one : cases) {
    INFO(one.name);
    Location location;
    location.source = yaml;
    location.line = one.line;
    location.column = one.column;
    location.width = one.width;
    CHECK(finder.key_at(location) == one.key);
  }
}

TEST_CASE("the key of a --set is read from its text", "[recipe][key_finder]") {
  struct Case {
    const char* text;
    const char* key;
  };
  static constexpr Case cases[] = {
      {"--set training.max_steps=ten", "training.max_steps"},
      {"training.max_steps=ten", "training.max_steps"},
      {"+callbacks=lr_monitor", "callbacks"},
      {"--set ~optimizer.lr", "optimizer.lr"},
      {"--num-processes 2", ""},
      {"ACCELERATE_MIXED_PRECISION=fp16", ""},
  };
  runner::recipe::KeyFinder finder;
  for (const Case& one : cases) {
    INFO(one.text);
    Location location;
    location.source = source_of(one.text, "", Source::Kind::kFlag);
    CHECK(finder.key_at(location) == one.key);
  }
}

TEST_CASE("a location without a key has none", "[recipe][key_finder]") {
  runner::recipe::KeyFinder finder;
  Location location;
  CHECK(finder.key_at(location).empty());  // unknown
  location.source = source_of("defaults", "", Source::Kind::kDefault);
  CHECK(finder.key_at(location).empty());
  location.source = source_of("r.yaml", "loss: [", Source::Kind::kFile);  // cannot be read
  location.line = location.column = location.width = 1;
  CHECK(finder.key_at(location).empty());
}
