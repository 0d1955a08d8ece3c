// Which tokens of a record the loss counts, and the special tokens around it, of tokenizers that differ.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/preferences.h"
#include "components/tensor/tensor_spec.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/json.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"
#include "tests/support/folder.h"

using components::kInput;
using components::kRejectedAt;
using components::kTarget;
using tests::fetched;
using tests::good_data;
using tests::tokenizer_file;
using tests::TokenizerFolder;
using Values = std::vector<double>;

namespace {

constexpr double kPad = components::kPadTarget;
constexpr const char* kStartAndEnd = R"({"bos_token": "<s>", "eos_token": "</s>"})";

std::string block(const std::string& tokenizer, const std::string& more = "", const std::string& type = "jsonl") {
  return "{type: " + type + ", path: a.txt, tokenizer: {type: file, path: " + tokenizer + "}" + more + "}";
}

std::string text_of(const components::data::Dataset& data, const Values& ids, bool counted) {
  std::vector<std::int64_t> kept;
  for (const double id : ids) {
    if (!counted || id != kPad) kept.push_back(static_cast<std::int64_t>(id));
  }
  return data.decode(kept);
}

std::string whole(const components::data::Dataset& data) { return text_of(data, fetched(data, {0}, kInput), false); }
std::string counted(const components::data::Dataset& data) { return text_of(data, fetched(data, {0}, kTarget), true); }

}  // namespace

TEST_CASE("blanks and line ends of an answer are learnt, those around it are not", "[data][jsonl][answers]") {
  // gpt2.json: ByteLevel with trim_offsets; mixed.json: RobertaProcessing with trim_offsets.
  const std::string roberta =
      R"("post_processor":{"type":"RobertaProcessing","sep":["<|endoftext|>",0],"cls":["<|endoftext|>",0],)"
      R"("trim_offsets":true,"add_prefix_space":true})";
  std::string framed = tokenizer_file("gpt2.json");
  const auto begin = framed.find("\"post_processor\":"), end = framed.find('}', begin);
  framed.replace(begin, end + 1 - begin, roberta);
  const std::string record = R"({"prompt": "Write f:\n\n \n", "completion": "def f():\n    return 1\n\n"})";
  const std::string chat =
      R"({"messages": [{"role": "user", "content": " a \n"}, {"role": "assistant", "content": "b \n\n  c\n\n"},)"
      R"( {"role": "user", "content": "d"}, {"role": "assistant", "content": " \n"}]})";
  const std::string format =
      R"(, chat_format: {before_user: "Q: ", after_user: "\n", before_assistant: "A:", assistant_end: "{eos}", )"
      R"(after_assistant: " \n"})";
  for (const std::string& tokenizer :
       {tokenizer_file("gpt2.json"), framed, tokenizer_file("smollm2.json"), tokenizer_file("llama3.json")}) {
    const std::string eos = tokenizer.find("<|endoftext|>") != std::string::npos ? "<|endoftext|>" : "<|eot_id|>";
    INFO(eos);
    const TokenizerFolder folder(tokenizer, R"({"eos_token": ")" + eos + "\"}");
    folder.write("a.txt", record + "\n");
    CHECK(counted(*good_data(block("tokenizer.json"))) == "def f():\n    return 1\n\n" + eos);
    folder.write("a.txt", chat + "\n");
    CHECK(counted(*good_data(block("tokenizer.json", format))) == "b \n\n  c\n\n" + eos + " \n" + eos);
    CHECK(fetched(*good_data(block("tokenizer.json", format)), {0}, kInput) ==
          fetched(*good_data(block("tokenizer.json", format + ", loss_on: all")), {0}, kInput));
  }
}

TEST_CASE("each byte of a character of an answer is learnt", "[data][jsonl][answers]") {
  const tests::Folder folder;
  folder.write("tokenizer.model", tokenizer_file("llama2.model"));
  folder.write("a.txt", R"({"prompt": "a ", "completion": "\ud83e\udd99"})"
                        "\n");
  const Values target = fetched(*good_data(block("tokenizer.model")), {0}, kTarget);
  // Four bytes, which the vocabulary has in place of the character, and the end token.
  CHECK(std::count_if(target.begin(), target.end(), [](double id) { return id != kPad; }) >= 5);
}

TEST_CASE("a start or end token that a record has itself is not doubled", "[data][jsonl][text_lines][answers]") {
  const TokenizerFolder folder(tokenizer_file("llama2.json"), kStartAndEnd);  // adds <s>
  struct Case {
    const char *type, *record, *whole, *counted;
  };
  const Case cases[] = {
      {"jsonl", R"({"text": "<s>[INST] hi [/INST] yes</s>"})", "<s> [INST] hi [/INST] yes</s>",
       "[INST] hi [/INST] yes</s>"},
      {"jsonl", R"({"text": "hi"})", "<s> hi</s>", "hi</s>"},
      {"jsonl", R"({"text": "<s><s>hi"})", "<s><s> hi</s>", "<s> hi</s>"},
      {"jsonl", R"({"prompt": "<s>[INST] hi [/INST]", "completion": " yes</s>"})", "<s> [INST] hi [/INST] yes</s>",
       "yes</s>"},
      {"jsonl", R"({"prompt": "hi", "completion": " yes"})", "<s> hi yes</s>", "yes</s>"},
      {"jsonl", R"({"prompt": "hi</s>", "completion": ""})", "<s> hi</s></s>", "</s>"},
      {"text_lines", "<s>hi</s>", "<s> hi</s>", "hi</s>"},
      {"text_lines", "hi", "<s> hi</s>", "hi</s>"},
  };
  for (const Case& c : cases) {
    INFO(c.record);
    folder.write("a.txt", std::string(c.record) + "\n");
    const bool lines = std::string(c.type) == "text_lines";
    const auto data = good_data(block("tokenizer.json", lines ? ", max_seq_len: 64" : "", c.type));
    CHECK(whole(*data) == c.whole);
    CHECK(counted(*data) == c.counted);
  }
}

TEST_CASE("a pair has its special tokens once", "[data][jsonl][pairs][answers]") {
  const TokenizerFolder folder(tokenizer_file("llama2.json"), kStartAndEnd);
  struct Case {
    const char *record, *chosen, *rejected;
  };
  // As trl.DPOTrainer 1.16 makes them, but for a start token that the prompt has, which TRL doubles.
  const Case cases[] = {
      {R"({"prompt": "hi", "chosen": " yes", "rejected": " no</s>"})", "<s> hi yes</s>", "<s> hi no</s>"},
      {R"({"prompt": "<s>hi", "chosen": " yes</s>", "rejected": " no"})", "<s> hi yes</s>", "<s> hi no</s>"},
      {R"({"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", "content": "b"}], )"
       R"("rejected": [{"role": "assistant", "content": "c"}]})",
       "<s> [INST] a [/INST] b </s>", "<s> [INST] a [/INST] c </s>"},
  };
  for (const Case& c : cases) {
    INFO(c.record);
    folder.write("a.txt", std::string(c.record) + "\n");
    const auto data = good_data(block("tokenizer.json", ", chat_format: llama2"));
    const Values input = fetched(*data, {0}, kInput);
    const auto middle = static_cast<std::ptrdiff_t>(fetched(*data, {0}, kRejectedAt)[0]);
    CHECK(text_of(*data, {input.begin(), input.begin() + middle}, false) == c.chosen);
    CHECK(text_of(*data, {input.begin() + middle, input.end()}, false) == c.rejected);
  }
}
