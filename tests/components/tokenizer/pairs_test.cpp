#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/tokenizer/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

using components::tokenizer::EncodeOptions;
using components::tokenizer::Encoding;
using components::tokenizer::read_tokenizer;
using components::tokenizer::Shortened;
using components::tokenizer::Side;
using components::tokenizer::Tokenizer;
using components::tokenizer::Truncation;
using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

namespace {

std::string folder() { return tests::source_dir() + "/tests/components/tokenizer/"; }

std::optional<Truncation> truncation_of(const Json& cut) {
  if (cut.is_null()) return std::nullopt;
  Truncation truncation;
  truncation.max_length = cut[0].get<std::size_t>();
  truncation.shortened = cut[1] == "only_first"    ? Shortened::kFirst
                         : cut[1] == "only_second" ? Shortened::kSecond
                                                   : Shortened::kLongest;
  truncation.side = cut[2] == "left" ? Side::kLeft : Side::kRight;
  return truncation;
}

}  // namespace

// Recorded from `tokenizers` 0.23.3 by tests/parity/tokenizer_pairs.py.
TEST_CASE("pairs are joined and cut as the library does it", "[tokenizer][recorded]") {
  const Json recorded = Json::parse(std::ifstream(folder() + "recorded/pairs.json"));
  std::map<std::string, std::shared_ptr<Tokenizer>> tokenizers;
  for (const Json& c : recorded["cases"]) {
    const auto name = c["file"].get<std::string>();
    auto& tokenizer = tokenizers[name];
    if (!tokenizer) tokenizer = read_tokenizer(folder() + "files/" + name).value();
    INFO(c.dump());
    EncodeOptions options;
    options.with_offsets = true;
    options.add_special_tokens = c["special"].get<bool>();
    const Json& pair = recorded["pairs"][c["pair"].get<std::size_t>()];
    const auto encoded = tokenizer->encode_pair(pair[0].get<std::string>(), pair[1].get<std::string>(), options,
                                                truncation_of(c["cut"]));
    REQUIRE(encoded.ok() != c.contains("refused"));
    if (!encoded) continue;
    const Encoding& encoding = encoded.value();
    CHECK(encoding.ids == c["ids"].get<Ids>());
    CHECK(encoding.type_ids == c["types"].get<Ids>());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> offsets;
    for (const auto& place : encoding.offsets) offsets.emplace_back(place.begin, place.end);
    CHECK(offsets == c["offsets"].get<std::vector<std::pair<std::uint32_t, std::uint32_t>>>());
    Ids origins;
    for (const auto origin : encoding.origins) origins.push_back(static_cast<std::int32_t>(origin));
    CHECK(origins == c["texts"].get<Ids>());
  }
  CHECK(tokenizers.size() == 11);
}

TEST_CASE("a pair that cannot be cut as wanted says what stands against it", "[tokenizer]") {
  const auto bert = read_tokenizer(folder() + "files/bert.json").value();
  const auto problem = [&](const Truncation& truncation) {
    const auto encoded = bert->encode_pair("the", "of the people", {}, truncation);
    return encoded ? "" : encoded.failure().message;
  };
  CHECK(problem({7, Shortened::kSecond}) == "");
  CHECK(problem({2, Shortened::kLongest}) == "a pair cannot be cut to 2 tokens: 3 are added to it");
  CHECK(problem({5, Shortened::kFirst}) == "a pair cannot be cut to 5 tokens: its first text has 1, and 2 have to go");
  CHECK(bert->encode_pair("the", "\xFF").failure().message == "the text is not UTF-8 at byte 0");
  const auto model = read_tokenizer(folder() + "files/unigram.model").value();
  CHECK(model->encode_pair("a", "b").failure().message ==
        folder() + "files/unigram.model: a SentencePiece model does not say how two texts are joined");
}

TEST_CASE("a damaged template of pairs is refused with file and field", "[tokenizer][damaged]") {
  const tests::TempDir damaged;
  const std::pair<const char*, const char*> cases[] = {
      {R"([{"Sequence":{"id":"C"}}])", "pair[0].Sequence.id is neither \"A\" nor \"B\""},
      {R"([{"SpecialToken":{"id":"<s>"}}])", "pair[0].SpecialToken.id is \"<s>\", which special_tokens lacks"},
      {R"([{"Sequence":{"id":"B","type_id":-1}}])", "pair[0].Sequence.type_id is not an integer from 0 to 15999999"},
      {R"("$A $B")", "pair is not a list"},
  };
  for (const auto& [pair, problem] : cases) {
    INFO(pair);
    std::ofstream(damaged / "tokenizer.json")
        << R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"post_processor":{"type":"TemplateProcessing",)"
        << R"("special_tokens":{},"single":[{"Sequence":{"id":"A"}}],"pair":)" << pair << "}}";
    const auto read = read_tokenizer(damaged.path());
    REQUIRE_FALSE(read);
    CHECK(read.failure().message == damaged / "tokenizer.json: post_processor." + problem);
  }
}
