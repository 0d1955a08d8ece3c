#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "components/tokenizer/tokenizer.h"
#include "tests/support/paths.h"

using components::tokenizer::EncodeOptions;
using components::tokenizer::Encoding;

namespace {

std::string folder() { return tests::source_dir() + "/tests/components/tokenizer/"; }

/// As tests/parity/tokenizer_texts.py writes them: each token's length, after a comma when it does not begin where the
/// one before ends.
std::string in_short(const Encoding& encoding) {
  std::string text;
  std::int64_t end = 0;
  for (const auto& offsets : encoding.offsets) {
    if (!text.empty()) text += ' ';
    if (offsets.begin != end) text += std::to_string(offsets.begin - end) + ",";
    text += std::to_string(std::int64_t{offsets.end} - offsets.begin);
    end = offsets.end;
  }
  return text;
}

std::string joined(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

}  // namespace

// Recorded from the libraries by tests/parity/tokenizer_texts.py: `tokenizers` 0.23.3 and `sentencepiece` 0.2.3.
TEST_CASE("tokenizers give the ids, offsets and texts of the libraries", "[tokenizer][recorded]") {
  const auto name = GENERATE(as<std::string>(), "gpt2.json", "llama2.json", "llama3.json", "qwen2.json", "smollm2.json",
                             "mixed.json", "suffix.json", "bert.json", "cased.json", "t5.json", "albert.json",
                             "llama2.model", "default.model", "unigram.model", "unigram_bytes.model");
  INFO(name);
  const auto read = components::tokenizer::read_tokenizer(folder() + "files/" + name);
  REQUIRE((read ? "" : read.failure().message) == "");
  const auto& tokenizer = *read.value();
  const auto texts =
      nlohmann::json::parse(std::ifstream(folder() + "recorded/texts.json")).get<std::vector<std::string>>();
  REQUIRE(texts.size() == 500);
  EncodeOptions options;
  options.with_offsets = true;
  const auto encodings = tokenizer.encode_batch(texts, options, 2).value();
  const auto dot = name.find('.');
  std::ifstream expected(folder() + "recorded/" + name.substr(dot + 1) + "/" + name.substr(0, dot) + ".expected");
  std::string line;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    REQUIRE(std::getline(expected, line));
    const auto row = nlohmann::json::parse(line).get<std::vector<std::string>>();
    INFO("text " << i << ": " << texts[i]);
    REQUIRE(joined(encodings[i].ids) == row[0]);
    REQUIRE(in_short(encodings[i]) == row[1]);
    REQUIRE(tokenizer.decode(encodings[i].ids, true).value() == (row.size() > 2 ? row[2] : texts[i]));
    options.with_offsets = false;
    REQUIRE(tokenizer.encode(texts[i], options).value().ids == encodings[i].ids);
    options.with_offsets = true;
  }
}
