#include "runner/artifact/tensor_set.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <string>

#include "tests/support/cost.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

using tests::TempDir;

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string shard(const std::string& tensor) {
  const std::string header = "{\"" + tensor + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  return static_cast<char>(header.size()) + std::string(7, '\0') + header + "x";
}

TEST_CASE("a damaged or hostile index of shards is refused with the reason", "[artifact][shards]") {
  struct Case {
    const char* name;
    std::string text;
    std::string reason;
  };
  const std::string none = "F is not an index of shards: ";
  std::string many;
  for (int i = 0; i < 250'000; ++i) many += "\"" + std::to_string(i) + "\":\"one.safetensors\",";
  std::string values;
  for (int i = 0; i < 1'000'000; ++i) values += "0,";
  const auto map = [](const std::string& entries) { return "{\"metadata\": {}, \"weight_map\": {" + entries + "}}"; };
  const auto listed = [&](const std::string& name) {
    return none + "tensor \"w\" is listed in " + name + ", which is not a file of tensors next to it";
  };
  const Case cases[] = {
      {"empty", "", none + "it is not valid JSON from byte 1 on"},
      {"no JSON", "weights", none + "it is not valid JSON from byte 1 on"},
      {"cut off", map("").substr(0, 30), none + "it is not valid JSON from byte 31 on"},
      {"a list", "[]", none + "it has no weight_map"},
      {"no map", "{}", none + "it has no weight_map"},
      {"a map of no kind", R"({"weight_map": [1]})", none + "it has no weight_map"},
      {"a number", map("\"w\": 3"), listed("3")},
      {"an object", map("\"w\": {}"), listed("{}")},
      {"upwards", map(R"("w": "../one.safetensors")"), listed("\"../one.safetensors\"")},
      {"absolute", map(R"("w": "/one.safetensors")"), listed("\"/one.safetensors\"")},
      {"of another kind", map(R"("w": "config.json")"), listed("\"config.json\"")},
      {"a tensor twice", map(R"("w": "one.safetensors", "w": "two.safetensors")"),
       none + "the key \"w\" appears twice"},
      {"a name that speaks to the terminal", map(R"("\u001b[2J": 3)"),
       none + "tensor \"\\x1b[2J\" is listed in 3, which is not a file of tensors next to it"},
      {"deep", "{\"weight_map\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}",
       none + "it is nested deeper than 8 levels"},
      {"very many values", "{\"metadata\": [" + values + "0]}", none + "it holds more than 10000 values"},
      {"very many tensors", map(many + "\"w\": 3"), none + "it lists more than 200000 tensors"},
      {"too long", map("\"w\": \"" + std::string(33 << 20, 'x') + "\""), "cannot read F: "},
      {"a shard that is not there", map(R"("w": "gone.safetensors")"), "cannot read DIR/gone.safetensors: no"},
      {"a shard of another model", map(R"("w": "one.safetensors", "v": "two.safetensors")"),
       "DIR/two.safetensors lacks tensor \"v\", which F lists"},
      {"a shard that is damaged", map(R"("w": "damaged.safetensors")"),
       "DIR/damaged.safetensors is not a safetensors file: it has 4 bytes, its length field alone takes 8"},
  };
  const TempDir dir;
  write(dir / "one.safetensors", shard("w"));
  write(dir / "two.safetensors", shard("other"));
  write(dir / "damaged.safetensors", "xxxx");
  const std::string path = dir / "model.safetensors.index.json";
  for (const Case& c : cases) {
    INFO(c.name);
    write(path, c.text);
    std::string reason;
    tests::check_cost_of_refusal([&] {
      const auto reader = open_tensors(path);
      reason = reader ? "" : reader.failure().message;
    });
    for (const auto& [what, by] : {std::pair<std::string, const char*>{path, "F"}, {dir.path(), "DIR"}}) {
      for (std::size_t at; (at = reason.find(what)) != std::string::npos;) reason.replace(at, what.size(), by);
    }
    CHECK(reason.substr(0, c.reason.size()) == c.reason);
  }
  write(path, map(R"("w": "one.safetensors", "other": "two.safetensors")"));
  CHECK(open_tensors(path).value()->tensors().size() == 2);
}

}  // namespace
}  // namespace runner::artifact
