#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "components/tokenizer/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

using components::tokenizer::read_tokenizer;
using Json = nlohmann::json;

// Recorded from Transformers 5.24 by tests/parity/tokenizer_bert.py.
TEST_CASE("a vocab.txt with a tokenizer_config.json is what Transformers makes of it", "[tokenizer][recorded]") {
  const std::string source = tests::source_dir() + "/tests/components/tokenizer/";
  const Json recorded = Json::parse(std::ifstream(source + "recorded/bert.json"));
  REQUIRE(recorded["cases"].size() == 144);
  const tests::TempDir folder(tests::TempDir::On::kMemory);
  std::filesystem::copy_file(source + "files/bert.txt", folder / "vocab.txt");
  for (const Json& c : recorded["cases"]) {
    std::ofstream(folder / "tokenizer_config.json") << c["config"];
    INFO(c["config"].dump());
    const auto tokenizer = read_tokenizer(folder.path());
    REQUIRE((tokenizer ? "" : tokenizer.failure().message) == "");
    for (std::size_t i = 0; i < c["ids"].size(); ++i) {
      const auto ids = c["ids"][i].get<std::vector<std::int32_t>>();
      CHECK(tokenizer.value()->encode(recorded["texts"][i].get<std::string>()).value().ids == ids);
      CHECK(tokenizer.value()->decode(ids, true).value() == c["decoded"][i].get<std::string>());
    }
  }
}
