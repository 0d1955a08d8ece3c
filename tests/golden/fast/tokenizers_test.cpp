// Ids and texts of a byte-level BPE and of WordPiece, topic tokenizers. Their files are real data, which is not part of
// the project: $ROUX_DATA, else ../shared/data beside the checkout.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/tokenizer/tokenizer.h"
#include "tests/support/golden.h"
#include "tests/support/paths.h"

using components::tokenizer::Tokenizer;
using tests::golden::Case;

namespace {

std::string data_folder() {
  const char* named = std::getenv("ROUX_DATA");
  return named != nullptr ? named : tests::source_dir() + "/../shared/data";
}

}  // namespace

TEST_CASE("tokenizers give the ids and the texts of the library", "[golden]") {
  const std::string folder = data_folder();
  const std::map<std::string, std::string> files = {{"gpt2", folder + "/gpt2/tokenizer.json"},
                                                    {"wordpiece", folder + "/mrpc/wordpiece.tokenizer.json"}};
  for (const auto& [name, file] : files) {
    if (std::filesystem::exists(file)) continue;
    std::cout << "tokenizers: skipped: no " << file << "; ROUX_DATA names the folder of data\n";
    return;
  }
  std::map<std::string, std::shared_ptr<Tokenizer>> tokenizers;
  for (const auto& [name, file] : files) tokenizers[name] = components::tokenizer::read_tokenizer(file).value();
  tests::golden::Coverage coverage("tokenizers");
  for (const Case& one : tests::golden::read_topic("tokenizers")) {
    INFO(one.name);
    const Tokenizer& tokenizer = *tokenizers.at(one.input.at("tokenizer").get<std::string>());
    const std::string text = one.input.at("text");
    const auto encoded = one.kind == "encode_pair"
                             ? tokenizer.encode_pair(text, one.input.at("pair").get<std::string>())
                             : tokenizer.encode(text);
    CHECK(encoded.value().ids == one.expected.at("ids").get<std::vector<std::int32_t>>());
    if (one.kind == "encode_pair") {
      CHECK(encoded.value().type_ids == one.expected.at("type_ids").get<std::vector<std::int32_t>>());
    } else {
      CHECK(tokenizer.decode(encoded.value().ids, true).value() == one.expected.at("decoded").get<std::string>());
    }
    coverage.checked(one.kind);
  }
  coverage.finish();
}
