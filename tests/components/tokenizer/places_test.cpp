// Where tokens lie in a text when their offsets are not trimmed, and special tokens that the text has itself.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "components/tokenizer/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

using components::tokenizer::Encoding;
using components::tokenizer::Offsets;
using components::tokenizer::read_tokenizer;
using components::tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;

namespace {

std::string folder() { return tests::source_dir() + "/tests/components/tokenizer/"; }

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Encoding placed(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encode(text, {.add_special_tokens = false, .with_offsets = true, .trim_offsets = false}).value();
}

}  // namespace

TEST_CASE("every token of a text lies somewhere, and every character in a token", "[tokenizer][places]") {
  struct Case {
    const char* name;
    bool whole;  ///< no normalizer takes characters away, and each byte has a token
  };
  static constexpr Case cases[] = {{"gpt2.json", true},     {"llama3.json", true},  {"qwen2.json", false},
                                   {"smollm2.json", false}, {"llama2.json", true},  {"mixed.json", false},
                                   {"suffix.json", false},  {"llama2.model", true}, {"default.model", false}};
  const auto texts =
      nlohmann::json::parse(std::ifstream(folder() + "recorded/texts.json")).get<std::vector<std::string>>();
  for (const Case& c : cases) {
    const auto tokenizer = read_tokenizer(folder() + "files/" + c.name).value();
    for (const std::string& text : texts) {
      const Encoding encoding = placed(*tokenizer, text);
      REQUIRE(encoding.ids == tokenizer->encode(text, {.add_special_tokens = false}).value().ids);
      REQUIRE(encoding.offsets.size() == encoding.ids.size());
      std::uint32_t covered = 0;
      bool whole = true;
      for (const Offsets& place : encoding.offsets) {
        INFO(c.name << ": " << text << ": " << place.begin << " " << place.end);
        REQUIRE(place.begin < place.end);
        REQUIRE(place.end <= characters(text));
        whole = whole && place.begin <= covered;
        covered = std::max(covered, place.end);
      }
      INFO(c.name << ": " << text);
      if (c.whole) CHECK((whole && covered == characters(text)));
    }
  }
}

TEST_CASE("a token whose neighbours have none lies where it is written", "[tokenizer][places]") {
  const tests::TempDir folder;
  // Of the bytes of "\n" and "é" the vocabulary has none, and no token for what is unknown.
  std::ofstream(folder / "tokenizer.json") << R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},
             "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}})";
  const auto tokenizer = read_tokenizer(folder.path()).value();
  const Encoding encoding = placed(*tokenizer,
                                   "\n\na\nb\xC3\xA9"
                                   "b\n");
  CHECK(encoding.ids == Ids{2, 1});
  CHECK(encoding.offsets == std::vector<Offsets>{{2, 5}, {6, 7}});
}

TEST_CASE("special tokens that a text has itself are not added again", "[tokenizer][special]") {
  struct Case {
    const char *name, *text;
    std::size_t added;  ///< tokens beside those of the text
  };
  static constexpr Case cases[] = {
      // TemplateProcessing: <s> before the text.
      {"llama2.json", "a", 1},
      {"llama2.json", "<s>a", 0},
      {"llama2.json", "<s><s>a", 0},  // both are the text's own
      {"llama2.json", "<s>", 0},
      {"llama2.json", "", 1},
      {"llama2.json", " <s>a", 1},  // something stands before it
      {"llama2.json", "< s>a", 1},
      // ByteLevel, then TemplateProcessing.
      {"llama3.json", "<|begin_of_text|>a", 0},
      {"llama3.json", "<|eot_id|>a", 1},
      // RobertaProcessing: <s> before the text, </s> behind it.
      {"mixed.json", "a", 2},
      {"mixed.json", "<s>a", 1},
      {"mixed.json", "a</s>", 1},
      {"mixed.json", "<s>a</s>", 0},
      {"mixed.json", "</s>a<s>", 2},
      // None is added: what the text has is left as it is.
      {"smollm2.json", "<|im_start|><|im_start|>a", 0},
  };
  for (const Case& c : cases) {
    INFO(c.name << ": " << c.text);
    const auto tokenizer = read_tokenizer(folder() + "files/" + c.name).value();
    const Ids alone = tokenizer->encode(c.text, {.add_special_tokens = false}).value().ids;
    const Encoding encoding = tokenizer->encode(c.text, tokenizer->for_text()).value();
    CHECK(encoding.ids.size() == alone.size() + c.added);
    CHECK(std::search(encoding.ids.begin(), encoding.ids.end(), alone.begin(), alone.end()) != encoding.ids.end());
  }
}
