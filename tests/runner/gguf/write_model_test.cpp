#include "runner/gguf/write_model.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "runner/artifact/tensor_bytes.h"
#include "runner/gguf/reader.h"
#include "runner/gguf/unpack.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/tensor_floats.h"
#include "runner/pretrained/write/folder_content.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace runner::gguf {
namespace {

using pretrained::FolderContent;
using tests::TempDir;

/// A byte-level BPE of three tokens and an end, as small as the vocabularies of tests/parity/models.
void write_tokenizer(const TempDir& dir) {
  std::ofstream(dir / "tokenizer.json") << R"({"version": "1.0", "added_tokens": [{"id": 3, "content": "<end>",
    "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}], "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
    "use_regex": true}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})";
  std::ofstream(dir / "tokenizer_config.json") << R"({"eos_token": "<end>"})";
}

core::Result<WrittenFile> write(const FolderContent& model, const TempDir& dir, const char* type) {
  return write_model({model.tensors(), model.config(), model.type(), dir.path(), dir / "model.gguf",
                      *find_file_type(type), /*force=*/true});
}

std::map<std::string, std::vector<float>> values_of(const FolderContent& model) {
  std::map<std::string, std::vector<float>> values;
  for (const pretrained::WrittenTensor& tensor : model.tensors()) {
    values[tensor.bytes.name] = pretrained::floats_of(tensor.bytes);
  }
  return values;
}

/// What is read back, and the most that a value is apart from the folder's.
FolderContent round_trip(const FolderContent& model, const TempDir& dir, const char* type, double& apart) {
  const auto done = write(model, dir, type);
  INFO((done ? "" : done.failure().message));
  REQUIRE(done);
  const auto file = open(dir / "model.gguf");
  REQUIRE(file);
  const std::string back = dir / type;
  const auto unpacked = unpack(*file.value(), "model.gguf", back);
  INFO((unpacked ? "" : unpacked.failure().message));
  REQUIRE(unpacked);
  FolderContent read(back);
  const auto before = values_of(model), after = values_of(read);
  apart = 0.0;
  for (const auto& [name, values] : before) {
    CAPTURE(name);
    REQUIRE(after.contains(name));
    REQUIRE(after.at(name).size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      apart = std::max(apart, std::fabs(static_cast<double>(values[i]) - static_cast<double>(after.at(name)[i])));
    }
  }
  CHECK(before.size() == after.size());
  return read;
}

}  // namespace

TEST_CASE("a file of llama.cpp is the model that was written, with each kind of number", "[gguf]") {
  for (const char* name : {"gpt2-default", "gpt2-untied", "llama-biases", "llama-grouped", "llama-head-dim",
                           "llama-linear", "mistral-full", "qwen2-default", "qwen2-tied", "qwen3-default"}) {
    CAPTURE(name);
    TempDir dir;
    write_tokenizer(dir);
    const FolderContent model(tests::source_dir() + "/tests/parity/models/" + name);
    double apart = 1.0;
    const FolderContent read = round_trip(model, dir, "f32", apart);
    CHECK(apart == 0.0);
    const pretrained::Facts own(model.type(), model.config()), other(read.type(), read.config());
    for (const char* role : {"layers", "width", "heads", "positions", "vocabulary"}) {
      CHECK(own.integer(role) == other.integer(role));
    }
    CHECK(own.head() == other.head());
    CHECK(own.flag("tied") == other.flag("tied"));
    if (own.has("rotary")) {
      CHECK(own.find("rotary")->find("rope_type")->as_string() == other.find("rotary")->find("rope_type")->as_string());
      CHECK(own.find("rotary")->find("rope_theta")->as_double() ==
            other.find("rotary")->find("rope_theta")->as_double());
    }
    for (const char* type : {"f16", "bf16", "q8_0", "q4_0"}) {
      CAPTURE(type);
      round_trip(model, dir, type, apart);
      CHECK(apart < 0.1);
    }
  }
}

TEST_CASE("a model that llama.cpp does not compute is refused by what it has", "[gguf]") {
  TempDir dir;
  write_tokenizer(dir);
  const std::map<std::string, std::string> expected = {
      {"mistral-window", "a window"}, {"gpt2-gelu-unscaled", "gpt2"}, {"gpt2-relu-inverse-layer", "gpt2"},
      {"llama-dynamic", "dynamic"},   {"llama-yarn", "yarn"},         {"llama-texts", "sequence_classification"},
      {"gemma2-default", "gemma2"},   {"bert-masked", "bert"}};
  for (const auto& [name, word] : expected) {
    CAPTURE(name);
    const FolderContent model(tests::source_dir() + "/tests/parity/models/" + name);
    const auto done = write(model, dir, "f32");
    REQUIRE(!done);
    CHECK(done.failure().message.find(word) != std::string::npos);
    CHECK(!done.failure().hint.empty());
    CHECK(!std::filesystem::exists(dir / "model.gguf"));
  }
}

}  // namespace runner::gguf
