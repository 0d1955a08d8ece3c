// Blocks of llama.cpp's formats as PyPI's gguf makes them, topic gguf_blocks.

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "runner/gguf/blocks.h"
#include "tests/support/golden.h"

namespace {

using namespace runner::gguf;

std::string bytes_of(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

}  // namespace

TEST_CASE("blocks of llama.cpp's formats are those of gguf", "[golden][gguf]") {
  tests::for_each_case("gguf_blocks", [](const tests::GoldenCase& c) {
    if (c.kind != "blocks") return false;
    const FileType* type = find_file_type(c.input.at("type").get<std::string>());
    REQUIRE(type != nullptr);
    const std::string given = bytes_of(c.input.at("values").get<std::string>());
    std::vector<float> values(given.size() / sizeof(float));
    std::memcpy(values.data(), given.data(), given.size());
    const auto count = static_cast<std::int64_t>(values.size());
    std::string blocks(static_cast<std::size_t>(row_bytes(type->type, count)), '\0');
    encode(type->type, values.data(), count, blocks.data());
    CHECK(blocks == bytes_of(c.expected.at("blocks").get<std::string>()));
    std::vector<float> back(values.size());
    decode(type->type, blocks.data(), count, back.data());
    std::string read(given.size(), '\0');
    std::memcpy(read.data(), back.data(), read.size());
    CHECK(read == bytes_of(c.expected.at("back").get<std::string>()));
    return true;
  });
}
