#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "components/tokenizer/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

using components::tokenizer::read_tokenizer;
using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

// Recorded from Transformers 5.24 by tests/parity/tokenizer_folders.py.
TEST_CASE("tokens that the files beside a tokenizer name are one id each", "[tokenizer][recorded]") {
  const Json recorded =
      Json::parse(std::ifstream(tests::source_dir() + "/tests/components/tokenizer/recorded/folders.json"));
  Json whole = Json::parse(std::ifstream(tests::source_dir() + "/recipes/examples/data/tokenizer.json"));
  Json bare = whole;
  bare["added_tokens"] = Json::array();
  REQUIRE(recorded["cases"].size() == 160);
  for (const Json& c : recorded["cases"]) {
    const tests::TempDir folder(tests::TempDir::On::kMemory);
    std::ofstream(folder / "tokenizer.json") << (c["own"].get<bool>() ? whole : bare);
    for (const auto& [name, content] : c["files"].items()) std::ofstream(folder / name) << content;
    INFO(c["own"] << " " << c["files"].dump());
    const auto tokenizer = read_tokenizer(folder.path());
    REQUIRE((tokenizer ? "" : tokenizer.failure().message) == "");
    for (std::size_t i = 0; i < c["ids"].size(); ++i) {
      CHECK(tokenizer.value()->encode(recorded["texts"][i].get<std::string>()).value().ids == c["ids"][i].get<Ids>());
    }
  }
}

TEST_CASE("a model without a type that has merges is a BPE", "[tokenizer]") {
  const tests::TempDir folder;
  std::ofstream(folder / "tokenizer.json") << R"({"model": {"vocab": {"a": 0, "b": 1}, "merges": []}})";
  CHECK(read_tokenizer(folder.path()).value()->encode("ab").value().ids == Ids{0, 1});
}
