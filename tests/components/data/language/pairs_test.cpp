// Pairs of a chosen and a rejected completion, as the records of jsonl.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensor_spec.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::kAttentionMask;
using components::kInput;
using components::kPositions;
using components::kRejectedAt;
using components::kTarget;
using tests::build_data;
using tests::fetched;
using tests::good_data;
using tests::TokenizerFolder;
using Values = std::vector<double>;

namespace {

constexpr double kPad = components::kPadTarget;

std::string block(const std::string& more) {
  return "{type: jsonl, path: a.jsonl, tokenizer: {type: file, path: tokenizer.json}" + more + "}";
}

/// The text of some ids of a row; those of padding targets are left out.
std::string text_of(const components::data::Dataset& data, const Values& ids, std::size_t first, std::size_t end) {
  std::vector<std::int64_t> whole;
  for (std::size_t i = first; i < end; ++i) {
    if (ids[i] != kPad) whole.push_back(static_cast<std::int64_t>(ids[i]));
  }
  return data.decode(whole);
}

constexpr const char* kPair = R"({"prompt": "Say hi:", "chosen": " hi", "rejected": " no, never"})";

}  // namespace

TEST_CASE("a pair is a row of both sequences", "[data][jsonl][pairs]") {
  struct Case {
    const char *record, *more, *chosen, *rejected, *chosen_counted, *rejected_counted;
  };
  // What trl.DPOTrainer 1.16 makes of the same texts: extract_prompt, add_eos of texts alone, tokenize_fn.
  const Case cases[] = {
      {kPair, "", "Say hi: hi<|im_end|>", "Say hi: no, never<|im_end|>", " hi<|im_end|>", " no, never<|im_end|>"},
      {R"({"chosen": "Say hi: hi", "rejected": "Say hi: no"})", "", "Say hi: hi<|im_end|>", "Say hi: no<|im_end|>",
       " hi<|im_end|>", " no<|im_end|>"},
      {R"({"q": "Why?", "good": " So.", "bad": " No."})", ", columns: {prompt: q, chosen: good, rejected: bad}",
       "Why? So.<|im_end|>", "Why? No.<|im_end|>", " So.<|im_end|>", " No.<|im_end|>"},
      {R"({"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", "content": "b"}],
           "rejected": [{"role": "assistant", "content": "c"}]})",
       ", chat_format: chatml", "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n",
       "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nc<|im_end|>\n", "b<|im_end|>\n", "c<|im_end|>\n"},
      {R"({"chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
           "rejected": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "c"}]})",
       ", chat_format: chatml", "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n",
       "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nc<|im_end|>\n", "b<|im_end|>\n", "c<|im_end|>\n"},
      // Whole conversations beside the messages that they begin with.
      {R"({"prompt": [{"role": "user", "content": "a"}],
           "chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
           "rejected": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "c"}]})",
       ", chat_format: chatml", "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n",
       "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nc<|im_end|>\n", "b<|im_end|>\n", "c<|im_end|>\n"},
  };
  for (const Case& c : cases) {
    INFO(c.record);
    std::string line = c.record;
    for (std::size_t at = line.find('\n'); at != std::string::npos; at = line.find('\n')) line[at] = ' ';
    const TokenizerFolder folder(line);
    const auto data = good_data(block(c.more));
    const Values input = fetched(*data, {0}, kInput), target = fetched(*data, {0}, kTarget);
    const auto middle = static_cast<std::size_t>(fetched(*data, {0}, kRejectedAt)[0]);
    CHECK(text_of(*data, input, 0, middle) == c.chosen);
    CHECK(text_of(*data, input, middle, input.size()) == c.rejected);
    CHECK(text_of(*data, target, 0, middle) == c.chosen_counted);
    CHECK(text_of(*data, target, middle, target.size()) == c.rejected_counted);
    CHECK(target[middle - 1] == kPad);
    const Values positions = fetched(*data, {0}, kPositions);
    CHECK(positions[middle - 1] == static_cast<double>(middle - 1));
    CHECK(positions[middle] == 0.0);
  }
}

TEST_CASE("pairs are cut, padded and counted by their longer sequence", "[data][jsonl][pairs]") {
  const TokenizerFolder folder(std::string(kPair) + "\n" + R"({"prompt": "a", "chosen": " b", "rejected": " c"})" +
                               "\n");
  const auto data = good_data(block(", max_seq_len: 5"));
  CHECK(data->signature().find(kPositions)->max_length == 5);
  const Values at = fetched(*data, {0, 1}, kRejectedAt), mask = fetched(*data, {0, 1}, kAttentionMask);
  CHECK(at[0] <= 5.0);
  const std::size_t width = mask.size() / 2;
  CHECK(width <= 10);
  CHECK(mask[width] == 1.0);
  CHECK(mask.back() == 0.0);
  for (const double position : fetched(*data, {0, 1}, kPositions)) CHECK(position < 5.0);
  CHECK(good_data(block(", max_seq_len: 5, too_long: drop"))->size() == 1);
}

TEST_CASE("pairs that are none are refused with their line", "[data][jsonl][pairs]") {
  struct Case {
    std::string records;
    const char *more, *message;
  };
  const std::string pair = std::string(kPair) + "\n";
  const Case cases[] = {
      {R"({"prompt": "a", "chosen": "b"})", "", "a.jsonl:1: rejected is missing"},
      {R"({"prompt": "a", "rejected": "b"})", "", "a.jsonl:1: chosen is missing"},
      {R"({"prompt": "a", "chosen": "b", "rejected": 3})", "", "a.jsonl:1: rejected is a number, not a text"},
      {R"({"prompt": "a", "chosen": [], "rejected": []})", ", chat_format: chatml", "a.jsonl:1: chosen is empty"},
      {R"({"chosen": [{"role": "user", "content": "a"}], "rejected": [{"role": "user", "content": "b"}]})",
       ", chat_format: chatml", "a.jsonl:1: chosen and rejected do not begin with the same message"},
      {R"({"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", "content": "b"}],)"
       R"( "rejected": [{"role": "assistant", "content": "c", "weight": 0}]})",
       ", chat_format: chatml", "a.jsonl:1: rejected has an answer that is not to be learnt"},
      {pair + R"({"text": "a"})", "", "a.jsonl:2: not a pair of chosen and rejected, as the first line"},
      {R"({"text": "a"})"
       "\n" +
           pair,
       "", "a.jsonl:2: a pair of chosen and rejected, not a text, as the first line"},
      {pair, ", packing: true", "packing is true, but the lines of data.train are pairs"},
      {pair, ", loss_on: all", "a pair of chosen and rejected, but loss_on is all"},
      {pair, ", loss_on: last", "a pair of chosen and rejected, but loss_on is last"},
      {pair, ", chat_format: chatml, train_on_eos: none", "a pair of chosen and rejected, but train_on_eos is none"},
  };
  for (const Case& c : cases) {
    const TokenizerFolder folder(c.records);
    const auto built = build_data(block(c.more));
    INFO(c.records << ": " << built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.message) != std::string::npos);
  }
}

TEST_CASE("a prompt that two whole conversations do not repeat is told", "[data][jsonl][pairs]") {
  const auto told = [](const std::string& prompt) {
    const TokenizerFolder folder(
        R"({"chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 1}],)"
        R"( "rejected": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "c"}], "prompt": )" +
        prompt + "}");
    const auto built = build_data(block(", chat_format: chatml"));
    REQUIRE(built.data != nullptr);
    return built.messages.find("not read are prompt of 1 record") != std::string::npos;
  };
  CHECK(told(R"("other")"));
  CHECK_FALSE(told(R"("a")"));
  CHECK_FALSE(told(R"("")"));
}

TEST_CASE("pairs are joined with pairs alone", "[data][jsonl][pairs][concat]") {
  const TokenizerFolder folder(std::string(kPair) + "\n");
  folder.write("b.jsonl", R"({"prompt": "a", "chosen": " b", "rejected": " c"})"
                          "\n");
  folder.write("c.jsonl", "{\"text\": \"a\"}\n");
  const auto joined = [](const std::string& second) {
    const auto of = [](const std::string& file) {
      return "{type: jsonl, path: " + file + ", max_seq_len: 6, tokenizer: {type: file, path: tokenizer.json}}";
    };
    return build_data("{type: concat, sets: [" + of("a.jsonl") + ", " + of(second) + "]}");
  };
  const auto good = joined("b.jsonl");
  INFO(good.messages);
  REQUIRE(good.data != nullptr);
  CHECK(fetched(*good.data, {0, 1}, kRejectedAt).size() == 2);
  for (const double position : fetched(*good.data, {0, 1}, kPositions)) CHECK(position < 6.0);
  const auto bad = joined("c.jsonl");
  CHECK(bad.data == nullptr);
  CHECK(bad.messages.find("set 2 has texts, and the first has pairs of chosen and rejected") != std::string::npos);
}
