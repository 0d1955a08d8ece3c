// Texts that a model with an encoder writes of others, in records of jsonl and ids.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::kAttentionMask;
using components::kDecoderInput;
using components::kInput;
using components::kTarget;
using components::data::LabelKind;
using tests::BuildData;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

namespace {

constexpr double kNone = components::kPadTarget;

const BuildData kWritten{.labels = LabelKind::kWritten, .decoder = {.start = 7, .padding = 5}};

class Folder : public tests::TokenizerFolder {
 public:
  explicit Folder(const std::string& records)
      : TokenizerFolder(tests::tokenizer_file("t5.json"), R"({"eos_token": "</s>", "unk_token": "<unk>"})") {
    write("a.jsonl", records);
  }
};

std::string block(const std::string& more = "") {
  return "{type: jsonl, path: a.jsonl, tokenizer: {type: file, path: tokenizer.json}, columns: {prompt: source, "
         "completion: target}" +
         more + "}";
}

constexpr const char* kRecords =
    "{\"source\": \"the quick\", \"target\": \"a fox and the dog\"}\n"
    "{\"source\": \"a fox and the dog\", \"target\": \"\"}\n";

std::string problem_of(const std::string& records, const std::string& more) {
  const Folder folder(records);
  const auto built = tests::build_data(block(more), kWritten);
  CHECK(built.data == nullptr);
  return built.messages;
}

}  // namespace

// Ids: transformers 5.24 of the same tokenizer.json.
TEST_CASE("a source and what is written of it have the tokens and the end that the tokenizer gives them",
          "[data][source]") {
  const Folder folder(kRecords);
  const auto data = good_data(block(), kWritten);
  CHECK(fetched(*data, {0}, kInput) == Values{171, 7, 264, 16, 325, 2});
  CHECK(fetched(*data, {0}, kTarget) == Values{226, 7, 12, 33, 23, 196, 171, 154, 204, 2});
  CHECK(fetched(*data, {0}, kDecoderInput) == Values{7, 226, 7, 12, 33, 23, 196, 171, 154, 204});
  CHECK(fetched(*data, {1}, kTarget) == Values{2});
  CHECK(fetched(*data, {1}, kDecoderInput) == Values{7});
  // Each of both is padded to its own longest one; a tokenizer without a padding token fills with its end token.
  CHECK(fetched(*data, {0, 1}, kInput) == Values{171, 7, 264, 16, 325, 2,   2,   2,   2,   2,  //
                                                 226, 7, 12,  33, 23,  196, 171, 154, 204, 2});
  CHECK(fetched(*data, {0, 1}, kAttentionMask) == Values{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(fetched(*data, {0, 1}, kTarget) == Values{226, 7,     12,    33,    23,    196,   171,   154,   204,   2,  //
                                                  2,   kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone});
  CHECK(data->predicted_positions(1) == 1);
}

TEST_CASE("a source and what is written of it are cut to lengths of their own", "[data][source]") {
  const Folder folder(kRecords);
  const auto data = good_data(block(", max_seq_len: 5, max_target_length: 4"), kWritten);
  CHECK(fetched(*data, {0}, kInput) == Values{171, 7, 264, 16, 2});
  CHECK(fetched(*data, {0}, kTarget) == Values{226, 7, 12, 2});
  CHECK(fetched(*data, {1}, kInput) == Values{226, 7, 12, 33, 2});
  CHECK(data->signature().at(kInput).max_length == 5);
  CHECK(data->signature().at(kDecoderInput).max_length == 4);
  CHECK(data->account().cut == 2);
  const auto both = good_data(block(", max_source_length: 5"), kWritten);
  CHECK(fetched(*both, {0}, kTarget) == Values{226, 7, 12, 33, 2});
  const auto dropped = good_data(block(", max_seq_len: 8, max_target_len: 16, too_long: drop"), kWritten);
  CHECK(dropped->size() == 1);
  CHECK(
      problem_of(kRecords, ", max_seq_len: 10, max_target_len: 4, too_long: error") ==
      "data.yaml:1:170: error: 1 line of data.train is longer than max_seq_len 10 or max_target_len 4, the longest has "
      "10 tokens\n"
      "  hint: raise max_seq_len, or use too_long: cut\n");
}

TEST_CASE("what a model with an encoder cannot write is refused", "[data][source]") {
  CHECK(problem_of("{\"source\": [{\"role\": \"user\", \"content\": \"the\"}], \"target\": \"a\"}\n", "") ==
        "data.yaml:1:21: error: a.jsonl:1: not a text with another one that the model writes of it\n"
        "  hint: name their fields: columns: {prompt: FIELD, completion: FIELD}; of plain texts transforms: [{type: "
        "span_corruption}] makes both\n");
  for (const char* key : {"loss_on: all", "train_on_eos: last", "train_on_thinking: false", "chat_format: chatml",
                          "streaming: true", "packing: true"}) {
    const std::string name = std::string(key).substr(0, std::string(key).find(':'));
    const std::string said = problem_of(kRecords, std::string(", ") + key);
    INFO(said);
    CHECK(said.find("error: data.train." + name + " is set, but the model writes a text of another one") !=
          std::string::npos);
    CHECK(said.find("\n  hint: remove " + name + "\n") != std::string::npos);
  }
  const Folder folder(kRecords);
  const auto without = tests::build_data(block(", max_target_len: 4"));
  CHECK(without.messages ==
        "data.yaml:1:140: error: data.train.max_target_len is set, but a record is one text here\n"
        "  hint: remove it: max_seq_len is of the whole text, of prompt and completion together\n");
}

TEST_CASE("labels of ids are what a decoder writes of them", "[data][ids][source]") {
  const tests::Folder folder;
  folder.write("a.jsonl",
               "{\"input_ids\": [1, 2, 3], \"labels\": [4, -100, 6, 8]}\n"
               "{\"input_ids\": [1], \"labels\": [9]}\n");
  const auto data = good_data("{type: ids, path: a.jsonl}", kWritten);
  CHECK(fetched(*data, {0, 1}, kInput) == Values{1, 2, 3, 1, 0, 0});
  CHECK(fetched(*data, {0, 1}, kTarget) == Values{4, kNone, 6, 8, 9, kNone, kNone, kNone});
  CHECK(fetched(*data, {0, 1}, kDecoderInput) == Values{7, 4, 5, 6, 7, 0, 0, 0});
  folder.write("b.jsonl", "{\"input_ids\": [1, 2, 3]}\n");
  CHECK(tests::build_data("{type: ids, path: b.jsonl}", kWritten).messages ==
        "data.yaml:1:19: error: b.jsonl:1: labels is missing, and the model writes it of input_ids\n"
        "  hint: give each line labels\n");
}
