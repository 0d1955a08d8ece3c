// Pairs of a chosen and a rejected completion, as the records of jsonl.

#include <ATen/ops/equal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/data/stream.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::kAttentionMask;
using components::kInput;
using components::kPositions;
using components::kRejectedAt;
using components::kTarget;
using components::TensorMap;
using components::data::Dataset;
using components::data::Stream;
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

std::string numbered_pair(int number) {
  return R"({"prompt": "Is )" + std::to_string(number) + R"( even?", "chosen": ")" +
         std::string(static_cast<std::size_t>(1 + number * 7 % 11), 'y') + R"(", "rejected": ")" +
         std::string(static_cast<std::size_t>(1 + number * 5 % 9), 'n') + "\"}\n";
}

std::string numbered_pairs(int begin, int end) {
  std::string records;
  for (int i = begin; i < end; ++i) records += numbered_pair(i);
  return records;
}

std::string streamed_block(const std::string& more) { return block(", max_seq_len: 12, streaming: true" + more); }

/// What a training meets in a stream after the first records are looked at.
std::string error_of_pass(const Dataset& data, int samples) {
  const auto stream = data.open_stream({});
  try {
    for (int i = 0; i < samples; ++i) {
      TensorMap batch;
      const auto sample = stream->next(true);
      stream->collate({&sample, 1}, batch);
    }
  } catch (const runner::core::RunError& error) {
    return error.what();
  }
  return "";
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
      // Answers to an instruction, as LLaMA-Factory's converter of Alpaca's form has them: "\n".join(query).
      {R"({"q": "a", "about": "x", "good": "b", "bad": "c"})",
       ", chat_format: chatml, columns: {instruction: q, input: about, chosen: good, rejected: bad}",
       "<|im_start|>user\na\nx<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n",
       "<|im_start|>user\na\nx<|im_end|>\n<|im_start|>assistant\nc<|im_end|>\n", "b<|im_end|>\n", "c<|im_end|>\n"},
      {R"({"instruction": "a", "history": [["d", "e"]], "system": "s", "chosen": "b", "rejected": "c"})",
       ", chat_format: chatml, columns: {instruction: instruction, chosen: chosen, rejected: rejected}",
       "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nd<|im_end|>\n<|im_start|>assistant\ne<|im_end|>\n"
       "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n",
       "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nd<|im_end|>\n<|im_start|>assistant\ne<|im_end|>\n"
       "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nc<|im_end|>\n",
       "b<|im_end|>\n", "c<|im_end|>\n"},
      {R"({"instruction": "a", "chosen": "b", "rejected": "c"})",
       ", columns: {instruction: instruction, chosen: chosen, rejected: rejected}",
       "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
       "### Instruction:\na\n\n### Response:\nb<|im_end|>",
       "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
       "### Instruction:\na\n\n### Response:\nc<|im_end|>",
       "b<|im_end|>", "c<|im_end|>"},
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

TEST_CASE("a stream of pairs has the rows of the set in memory", "[data][jsonl][pairs][stream]") {
  constexpr int kPairs = 11;
  const TokenizerFolder folder(numbered_pairs(0, kPairs));
  for (const char* more : {"", ", pad_to_multiple_of: 8", ", too_long: drop", ", on_bad_record: skip"}) {
    INFO(more);
    const auto data = good_data(block(", max_seq_len: 12" + std::string(more)));
    const auto streamed = good_data(streamed_block(more));
    REQUIRE(streamed->is_stream());
    REQUIRE(data->signature().tensors.size() == streamed->signature().tensors.size());
    for (const auto& spec : data->signature().tensors) {
      INFO(spec.name);
      REQUIRE(streamed->signature().find(spec.name) != nullptr);
      CHECK(streamed->signature().find(spec.name)->max_length == spec.max_length);
    }
    const auto stream = streamed->open_stream({});
    for (std::int64_t begin = 0; begin < 2 * data->size(); begin += 3) {  // over the end of a pass
      std::vector<Stream::SamplePointer> samples;
      std::vector<std::int64_t> indices;
      for (std::int64_t i = begin; i < begin + 3; ++i) {
        samples.push_back(stream->next(true));
        indices.push_back(i % data->size());
        const auto parts = samples.back()->parts(), wanted = data->parts_of(indices.back());
        REQUIRE(parts.size() == 2);
        for (std::size_t k = 0; k < parts.size(); ++k) {
          CHECK(parts[k].begin == wanted[k].begin);
          CHECK(parts[k].length == wanted[k].length);
          CHECK(parts[k].cut == wanted[k].cut);
          CHECK(parts[k].record->number == wanted[k].record->number);
        }
      }
      TensorMap found, wanted;
      stream->collate(samples, found);
      data->fetch(indices, wanted);
      for (const auto& spec : data->signature().tensors) {
        INFO(spec.name);
        CHECK(at::equal(found.at(spec.name), wanted.at(spec.name)));
      }
    }
  }
}

TEST_CASE("a stream of pairs has the positions of the set in memory where rows are filled in front", "[data][pairs]") {
  const TokenizerFolder folder(tests::example_tokenizer(),
                               R"({"eos_token": "<|im_end|>", "pad_token": "<|im_end|>", "padding_side": "left"})");
  folder.write("a.jsonl", numbered_pairs(0, 4));
  const auto data = good_data(block(", max_seq_len: 12")), streamed = good_data(streamed_block(""));
  const auto stream = streamed->open_stream({});
  std::vector<Stream::SamplePointer> samples;
  for (int i = 0; i < 4; ++i) samples.push_back(stream->next(true));
  TensorMap found, wanted;
  stream->collate(samples, found);
  data->fetch(std::vector<std::int64_t>{0, 1, 2, 3}, wanted);
  for (const auto& spec : data->signature().tensors) {
    INFO(spec.name);
    CHECK(at::equal(found.at(spec.name), wanted.at(spec.name)));
    CHECK(streamed->signature().find(spec.name)->scattered == spec.scattered);
  }
}

TEST_CASE("a shuffled stream of pairs is what it was behind each mark", "[data][jsonl][pairs][stream]") {
  const TokenizerFolder folder(numbered_pairs(0, 11));
  const auto row_of = [](Stream& stream) {
    TensorMap batch;
    const auto sample = stream.next(true);
    stream.collate({&sample, 1}, batch);
    return batch.at(kInput);
  };
  for (const char* more : {", shuffle_buffer: 4", ", shuffle_buffer: 4, on_bad_record: skip, too_long: drop"}) {
    INFO(more);
    const auto data = good_data(streamed_block(more));
    const auto whole = data->open_stream({.shuffle = true, .seed = 3});
    const auto other = data->open_stream({.shuffle = true, .seed = 3});
    std::vector<at::Tensor> rows;
    std::vector<runner::core::Node> marks;
    for (int i = 0; i < 25; ++i) {
      marks.push_back(whole->mark()->to_node());
      rows.push_back(row_of(*whole));
    }
    for (const std::size_t at : {7U, 0U, 23U, 12U}) {
      other->go_to(*other->mark_of(marks[at]));
      for (std::size_t i = at; i < rows.size(); ++i) CHECK(at::equal(row_of(*other), rows[i]));
    }
  }
}

TEST_CASE("a record of a stream is a pair as the first one is, or an error with its line",
          "[data][jsonl][pairs][stream]") {
  const std::string text = "{\"text\": \"a\"}\n";
  std::string texts;
  for (int i = 0; i < 12; ++i) texts += text;
  const std::string no_pair = "not a pair of chosen and rejected, as the first line of data.train is";
  const std::string no_text = "a pair of chosen and rejected, not a text, as the first line of data.train is";
  for (const char* more : {"", ", on_bad_record: skip", ", too_long: drop"}) {
    INFO(more);
    const TokenizerFolder folder(numbered_pairs(0, 12) + text);
    CHECK(error_of_pass(*good_data(streamed_block(more)), 20) == "a.jsonl:13: " + no_pair);
    folder.write("a.jsonl", numbered_pairs(0, 3) + text);
    auto built = build_data(streamed_block(more));
    CHECK(built.data == nullptr);
    CHECK(built.messages.find("a.jsonl:4: " + no_pair) != std::string::npos);
    folder.write("a.jsonl", texts + numbered_pair(0));
    CHECK(error_of_pass(*good_data(streamed_block(more)), 20) == "a.jsonl:13: " + no_text);
    folder.write("a.jsonl", text + numbered_pair(0));
    built = build_data(streamed_block(more));
    CHECK(built.data == nullptr);
    CHECK(built.messages.find("a.jsonl:2: " + no_text) != std::string::npos);
  }
  // What is skipped says nothing of a set, however much it is.
  std::string bad;
  for (int i = 0; i < 20; ++i) bad += "[1]\n";
  const TokenizerFolder folder(bad + numbered_pairs(0, 3));
  const auto built = build_data(streamed_block(", on_bad_record: skip"));
  REQUIRE(built.data != nullptr);
  CHECK(built.data->signature().find(kRejectedAt) != nullptr);
  CHECK(built.messages.find("of the first 8 lines none is used") != std::string::npos);
  CHECK(error_of_pass(*built.data, 9).empty());
}

TEST_CASE("streams of pairs that cannot be used are told before the training", "[data][jsonl][pairs][stream]") {
  struct Case {
    const char *more, *message;
  };
  const Case cases[] = {
      {", packing: true", "packing is true, but the lines of data.train are pairs of chosen and rejected"},
      {", loss_on: all", "a.jsonl:1: a pair of chosen and rejected, but loss_on is all"},
      {", columns: {rejected: other}", "a.jsonl:1: other is missing"},
  };
  const TokenizerFolder folder(numbered_pairs(0, 9));
  for (const Case& c : cases) {
    const auto built = build_data(streamed_block(c.more));
    INFO(c.more << ": " << built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.message) != std::string::npos);
  }
  folder.write("a.jsonl", R"({"prompt": "A prompt that is longer than all of the row", "chosen": "b", "rejected": "c"})"
                          "\n" +
                              numbered_pairs(0, 4));
  const auto built = build_data(streamed_block(""));
  CHECK(built.data != nullptr);
  CHECK(built.messages.find("of the first 5 lines 1 is a pair with a prompt that fills max_seq_len, so that an answer "
                            "is cut away, such as a.jsonl:1") != std::string::npos);
}
