#include <catch2/catch.hpp>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/safetensors_layout.h"
#include "tests/support/cost.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

using tests::TempDir;

std::string length_field(std::uint64_t length) {
  std::string field(8, '\0');
  for (int i = 0; i < 8; ++i) field[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i));
  return field;
}

/// A file with this header and this many bytes of data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  return length_field(header.size()) + header + std::string(data_bytes, 'x');
}

core::Result<std::unique_ptr<SafetensorsReader>> open_text(const TempDir& dir, const std::string& text) {
  std::ofstream(dir / "t.safetensors", std::ios::binary | std::ios::trunc) << text;
  return SafetensorsReader::open(dir / "t.safetensors");
}

TEST_CASE("tensors stand by type, widest first, then by name", "[artifact][safetensors]") {
  std::vector<TensorBytes> tensors;
  const std::pair<const char*, const char*> given[] = {{"b", "F16"},  {"a", "BOOL"}, {"z", "F32"}, {"c", "I64"},
                                                       {"a2", "F32"}, {"d", "BF16"}, {"e", "U8"}};
  for (const auto& [name, dtype] : given) tensors.push_back({name, dtype, {}, nullptr, safetensors_item_bytes(dtype)});
  sort_for_safetensors(tensors);
  std::string order;
  for (const TensorBytes& tensor : tensors) order += tensor.name + " ";
  CHECK(order == "c a2 z d b e a ");
}

TEST_CASE("the header is what the safetensors library writes, and the data starts aligned", "[artifact][safetensors]") {
  // Golden vectors, checkpointing / save_model_0.
  const char* expected = R"({
    "__metadata__": {"format": "pt"},
    "embed.weight": {"dtype": "F32", "shape": [10, 4], "data_offsets": [0, 160]},
    "head.weight": {"dtype": "F32", "shape": [10, 4], "data_offsets": [160, 320]},
    "layer1.bias": {"dtype": "F32", "shape": [4], "data_offsets": [320, 336]}})";
  std::vector<TensorBytes> tensors = {{"layer1.bias", "F32", {4}, nullptr, 16},
                                      {"head.weight", "F32", {10, 4}, nullptr, 160},
                                      {"embed.weight", "F32", {10, 4}, nullptr, 160}};
  sort_for_safetensors(tensors);
  const std::string head = safetensors_head(tensors, {{"format", "pt"}});
  CHECK(head.size() % 64 == 0);
  CHECK(head.substr(0, 8) == length_field(head.size() - 8));
  CHECK(nlohmann::json::parse(head.substr(8)) == nlohmann::json::parse(expected));
}

TEST_CASE("what was written is read back", "[artifact][safetensors]") {
  const TempDir dir;
  const std::vector<float> wide = {1.5f, -2.0f, 3.25f};
  const std::vector<char> large(3 << 20, 'q');
  const char name[] = "odd \"name\" \xc3\xa9\n";
  const auto draft = CheckpointWriter::begin(dir.path(), 1, 0).value();
  draft
      ->add_safetensors("x.safetensors",
                        {{name, "F32", {3}, wide.data(), 12},
                         {"large", "U8", {3 << 20}, large.data(), 3 << 20},
                         {"empty", "F32", {0, 5}, nullptr, 0},
                         {"scalar", "F32", {}, wide.data() + 2, 4}},
                        {{"format", "pt"}, {"k\"", "v"}})
      .value();
  const std::string path = draft->commit({}, nullptr, 0).value();
  const auto reader = SafetensorsReader::open(path + "/x.safetensors").value();
  CHECK(reader->metadata() == std::vector<std::pair<std::string, std::string>>{{"format", "pt"}, {"k\"", "v"}});
  CHECK(reader->tensors().size() == 4);
  REQUIRE(reader->find(name) != nullptr);
  CHECK(std::memcmp(reader->find(name)->data, wide.data(), 12) == 0);
  CHECK(reader->find("large")->bytes == 3 << 20);
  CHECK(std::memcmp(reader->find("large")->data, large.data(), large.size()) == 0);
  CHECK(reader->find("empty")->shape == std::vector<std::int64_t>{0, 5});
  CHECK(*static_cast<const float*>(reader->find("scalar")->data) == 3.25f);
  CHECK(reader->find("other") == nullptr);
}

TEST_CASE("a file that is none is refused with the reason", "[artifact][safetensors]") {
  struct Case {
    const char* name;
    std::string text;
    const char* reason;
  };
  const std::string f32 = R"("dtype":"F32",)";
  std::string many;
  for (int i = 0; i < 2'000'000; ++i) many += "0,";
  std::string entries;
  for (int i = 0; i < 1'000'000; ++i) {
    entries += "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  }
  const Case cases[] = {
      {"empty", "", "it has 0 bytes, its length field alone takes 8"},
      {"seven bytes", "1234567", "it has 7 bytes, its length field alone takes 8"},
      {"huge header", length_field(1ULL << 63) + "{}",
       "its header would be 9223372036854775808 bytes long, at most 100000000 are allowed"},
      {"header beyond the end", length_field(90) + "{}", "its header would be 90 bytes long, the file ends after 2"},
      {"no JSON", file_of("hello", 0), "its header cannot be read: it is not valid JSON from byte 1 on"},
      {"empty header", file_of("", 0), "its header cannot be read: it is not valid JSON from byte 1 on"},
      {"not UTF-8", file_of("{\"\xff\":1}", 0),
       "its header cannot be read: it is not valid JSON from byte 3 on: it is not UTF-8 there, perhaps Latin-1"},
      {"list", file_of("[]", 0), "its header is not an object"},
      {"deep", file_of(R"({"a":[[[[[]]]]]})", 0), "its header cannot be read: it is nested deeper than 4 levels"},
      {"very many values", file_of("{\"a\":[" + many + "0]}", 0),
       "its header cannot be read: it holds more than 100000 values"},
      {"very many tensors", file_of("{" + entries + "\"z\":0}", 0), "it has more than 200000 tensors"},
      {"wrong after many tensors", file_of("{" + entries.substr(0, entries.find("\"199999\"")) + "\"z\":0}", 0),
       "tensor \"z\" lacks dtype, shape or data_offsets"},
      {"a thousand million entries said", length_field(100'000'000) + std::string(1 << 20, '{'),
       "its header would be 100000000 bytes long, the file ends after 1048576"},
      {"name twice", file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{}})", 0),
       "its header cannot be read: the key \"a\" appears twice"},
      {"metadata no text", file_of(R"({"__metadata__":{"a":1}})", 0), "its __metadata__ entry \"a\" is not text"},
      {"no dtype", file_of(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4),
       "tensor \"a\" lacks dtype, shape or data_offsets"},
      {"one offset", file_of("{\"a\":{" + f32 + R"("shape":[1],"data_offsets":[0]}})", 4),
       "tensor \"a\" lacks dtype, shape or data_offsets"},
      {"unknown type", file_of(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4),
       "tensor \"a\" has the unknown type \"F33\""},
      {"controls in a name", file_of("{\"a\\u001b[2J\\n\":{}}", 0),
       "tensor \"a\\x1b[2J\\x0a\" lacks dtype, shape or data_offsets"},
      {"negative size", file_of("{\"a\":{" + f32 + R"("shape":[-1],"data_offsets":[0,4]}})", 4),
       "tensor \"a\" has a size or offset that is not a count"},
      {"fractional size", file_of("{\"a\":{" + f32 + R"("shape":[1.5],"data_offsets":[0,4]}})", 4),
       "tensor \"a\" has a size or offset that is not a count"},
      {"size beyond 64 bits", file_of("{\"a\":{" + f32 + R"("shape":[99999999999999999999],"data_offsets":[0,4]}})", 4),
       "its header cannot be read: the integer 99999999999999999999 does not fit into 64 bits"},
      {"overflowing shape", file_of("{\"a\":{" + f32 + R"("shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4),
       "the shape of tensor \"a\" overflows"},
      {"wrong size", file_of("{\"a\":{" + f32 + R"("shape":[2],"data_offsets":[0,4]}})", 4),
       "tensor \"a\" takes 8 bytes by its shape and type, but 4 by its offsets"},
      {"beyond the data", file_of("{\"a\":{" + f32 + R"("shape":[2],"data_offsets":[0,8]}})", 4),
       "tensor \"a\" is at [0, 8), the data is 4 bytes long"},
      {"backwards", file_of("{\"a\":{" + f32 + R"("shape":[1],"data_offsets":[4,0]}})", 4),
       "tensor \"a\" is at [4, 0), the data is 4 bytes long"},
      {"overlap",
       file_of("{\"a\":{" + f32 + R"("shape":[2],"data_offsets":[0,8]},"b":{)" + f32 +
                   R"("shape":[1],"data_offsets":[4,8]}})",
               8),
       "tensor \"b\" overlaps the previous one"},
      {"hole", file_of("{\"a\":{" + f32 + R"("shape":[1],"data_offsets":[4,8]}})", 8),
       "there is a gap before tensor \"a\""},
      {"trailing data", file_of("{\"a\":{" + f32 + R"("shape":[1],"data_offsets":[0,4]}})", 6),
       "2 trailing bytes after the last tensor"},
  };
  const TempDir dir;
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      std::ofstream(dir / "t.safetensors", std::ios::binary | std::ios::trunc) << c.text;
      std::optional<core::Result<std::unique_ptr<SafetensorsReader>>> answer;
      tests::check_cost_of_refusal([&] { answer.emplace(SafetensorsReader::open(dir / "t.safetensors")); });
      const auto& reader = *answer;
      REQUIRE_FALSE(reader.ok());
      CHECK(reader.failure().message == (dir / "t.safetensors") + " is not a safetensors file: " + c.reason);
    }
  }
}

TEST_CASE("a missing file and a folder are named", "[artifact][safetensors]") {
  const TempDir dir;
  CHECK(SafetensorsReader::open(dir / "none").failure().message ==
        "cannot read " + (dir / "none") + ": no such file or directory");
  CHECK(SafetensorsReader::open(dir.path()).failure().message ==
        dir.path() + " is not a safetensors file: it is not a regular file");
}

TEST_CASE("a file with bytes changed at random is read or refused, never worse", "[artifact][safetensors]") {
  const TempDir dir(TempDir::On::kMemory);
  const std::string whole =
      file_of(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
              R"("b":{"dtype":"I64","shape":[1],"data_offsets":[16,24]}})",
              24);
  std::mt19937 random(7);
  int opened = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (int change = static_cast<int>(random() % 3); change >= 0; --change) {
      text[random() % (text.size() - 24)] = static_cast<char>(random());
    }
    if (random() % 8 == 0) text.resize(random() % text.size());
    const auto reader = open_text(dir, text);
    if (!reader) continue;
    ++opened;
    for (const TensorBytes& tensor : reader.value()->tensors()) {
      const char* const data = static_cast<const char*>(tensor.data);
      for (std::int64_t i = 0; i < tensor.bytes; ++i) REQUIRE(data[i] == 'x');
    }
  }
  CHECK(opened > 0);
}

}  // namespace
}  // namespace runner::artifact
