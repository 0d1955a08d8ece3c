#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "components/tensor/positions.h"
#include "components/tensor/tensor_spec.h"
#include "components/tensor/tensors.h"
#include "tests/components/data/building.h"
#include "tests/support/folder.h"
#include "tests/support/paths.h"

using components::kAttentionMask;
using components::kDecoderInput;
using components::kInput;
using components::kPositions;
using components::kTarget;
using components::kTokenTypes;
using components::data::LabelKind;
using tests::build_data;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

namespace {

constexpr double kPad = components::kPadTarget;

std::vector<std::string> names_of(const components::data::Dataset& data) {
  components::TensorMap batch;
  data.fetch(std::vector<std::int64_t>{0}, batch);
  std::vector<std::string> names;
  for (const auto& item : batch.items()) names.push_back(item.name);
  return names;
}

}  // namespace

TEST_CASE("a line of ids is a sample, with the next ids as target", "[data][ids]") {
  const tests::Folder folder;
  folder.write("a.jsonl", R"({"input_ids": [5, 6, 7]})"
                          "\n\n"
                          R"({"input_ids": [8, 2], "text": "other keys are skipped"})"
                          "\n");
  folder.write("b.jsonl", R"({"input_ids": [1, 2, 3, 4], "labels": [-100, -100, 3, 9]})");  // no end
  const auto data = good_data("{type: ids, path: '*.jsonl'}");
  CHECK(data->size() == 3);
  CHECK(data->describe() == "2 files, 139 B, 3 lines of 2 to 4 ids");
  CHECK(data->signature().at(kInput).vocab_size == 10);  // a label counts
  CHECK(data->signature().max_length() == 4);
  CHECK(data->signature().padded());
  CHECK(data->length_of(1) == 2);
  CHECK(data->tokens_per_sample() == 0);
  CHECK(data->predicted_positions(1) == 2);
  CHECK(data->record_of(1)->number == 3);
  CHECK(data->record_of(2)->file == "b.jsonl");
  CHECK(fetched(*data, {0, 1, 2}, kInput) == Values{5, 6, 7, 0, 8, 2, 0, 0, 1, 2, 3, 4});
  CHECK(fetched(*data, {0, 1, 2}, kTarget) == Values{6, 7, kPad, kPad, 2, kPad, kPad, kPad, kPad, 3, 9, kPad});
  CHECK(fetched(*data, {0, 1, 2}, kAttentionMask) == Values{1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1});
  CHECK(names_of(*data) == std::vector<std::string>{kInput, kTarget, kAttentionMask});
}

TEST_CASE("ids of which a transform masks some are their own target", "[data][ids]") {
  const tests::Folder folder;
  folder.write("a.jsonl", R"({"input_ids": [5, 6, 7]})"
                          "\n"
                          R"({"input_ids": [8, 2], "labels": [-100, 2]})"
                          "\n"
                          R"({"input_ids": [0, 3, 4], "attention_mask": [0, 1, 1]})"
                          "\n");
  folder.write("masked.jsonl", R"({"input_ids": [1, 6], "labels": [5, -100]})");
  const tests::BuildData unmasked{.labels = LabelKind::kUnmasked};
  const auto data = good_data("{type: ids, path: a.jsonl}", unmasked);
  CHECK(data->signature().at(kTarget).in_place);
  CHECK(fetched(*data, {0, 1, 2}, kInput) == Values{5, 6, 7, 8, 2, 0, 0, 3, 4});
  CHECK(fetched(*data, {0, 1, 2}, kTarget) == Values{5, 6, 7, kPad, 2, kPad, kPad, 3, 4});
  const auto packed = good_data("{type: ids, path: a.jsonl, packing: true, max_seq_len: 5}", unmasked);
  CHECK(fetched(*packed, {0}, kTarget) == Values{5, 6, 7, kPad, 2});
  CHECK(build_data("{type: ids, path: masked.jsonl}", unmasked).messages ==
        "data.yaml:1:19: error: masked.jsonl:1: labels[0] is 5, and the id there 1: it is masked already\n"
        "  hint: remove transforms, which mask ids, or labels\n");
  const auto blocks = good_data("{type: tokens, path: " + tests::source_dir() +
                                    "/recipes/examples/data/counting.u16, vocab_size: 97, max_seq_len: 4}",
                                unmasked);
  CHECK(blocks->signature().at(kTarget).in_place);
  CHECK(fetched(*blocks, {0, 2}, kTarget) == fetched(*blocks, {0, 2}, kInput));
}

TEST_CASE("ids that were masked are labels at their own positions", "[data][ids]") {
  const tests::Folder folder;
  folder.write("a.jsonl", R"({"input_ids": [1, 6, 1], "labels": [5, -100, 7]})"
                          "\n"
                          R"({"input_ids": [8, 1], "labels": [-100, 2]})"
                          "\n");
  folder.write("none.jsonl", R"({"input_ids": [1, 6]})");
  folder.write("decoded.jsonl", R"({"input_ids": [1, 6], "labels": [1], "decoder_input_ids": [2]})");
  const tests::BuildData masked{.labels = LabelKind::kMasked};
  const auto data = good_data("{type: ids, path: a.jsonl}", masked);
  CHECK(fetched(*data, {0, 1}, kTarget) == Values{5, kPad, 7, kPad, 2, kPad});
  CHECK(data->signature().at(kTarget).in_place);
  CHECK_FALSE(good_data("{type: ids, path: a.jsonl}")->signature().at(kTarget).in_place);
  CHECK(build_data("{type: ids, path: none.jsonl}", masked).messages ==
        "data.yaml:1:19: error: none.jsonl:1: labels is missing, and the model's head learns the ids that were masked\n"
        "  hint: give each line labels: the id that was masked, and -100 at all others; or add transforms: [{type: "
        "mask_tokens}], which masks some\n");
  CHECK(build_data("{type: ids, path: decoded.jsonl}", masked).messages ==
        "data.yaml:1:19: error: decoded.jsonl:1: decoder_input_ids is here, and the model reads input_ids alone\n");
  const auto rows = good_data("{type: ids, path: none.jsonl}",
                              {.name = "new", .train = data.get(), .labels = LabelKind::kMasked, .new_rows = true});
  CHECK(fetched(*rows, {0}, kTarget) == Values{kPad, kPad});
}

TEST_CASE("a mask is there where something is masked, or is asked for", "[data][ids]") {
  const tests::Folder folder;
  folder.write("even.jsonl", "{\"input_ids\": [1, 2], \"attention_mask\": [1, 1]}\n{\"input_ids\": [3, 4]}\n");
  folder.write("masked.jsonl", "{\"input_ids\": [1, 2, 3], \"attention_mask\": [0, 1, 1]}\n");
  const auto even = good_data("{type: ids, path: even.jsonl}");
  CHECK(names_of(*even) == std::vector<std::string>{kInput, kTarget});
  CHECK_FALSE(even->signature().padded());
  CHECK(even->tokens_per_sample() == 2);
  CHECK(even->length_of(0) == 0);
  CHECK(even->unigram_entropy() == Approx(std::log(2.0)));  // of 2 and 4, which are predicted
  const auto asked = good_data("{type: ids, path: even.jsonl, attention_mask: always}");
  CHECK(fetched(*asked, {0, 1}, kAttentionMask) == Values{1, 1, 1, 1});
  const auto masked = good_data("{type: ids, path: masked.jsonl, vocab_size: 5}");
  CHECK(fetched(*masked, {0}, kAttentionMask) == Values{0, 1, 1});
  CHECK(fetched(*masked, {0}, kTarget) == Values{2, 3, kPad});
  const auto val = good_data("{type: ids, path: even.jsonl}", {"val", masked.get()});  // the model may read it
  CHECK(fetched(*val, {0}, kAttentionMask) == Values{1, 1});
}

TEST_CASE("ids that a mask leaves out are no target", "[data][ids]") {
  const tests::Folder folder;
  folder.write("a.jsonl", "{\"input_ids\": [1, 2, 3, 4], \"attention_mask\": [1, 1, 0, 0]}\n");
  CHECK(fetched(*good_data("{type: ids, path: a.jsonl}"), {0}, kTarget) == Values{2, kPad, kPad, kPad});
}

TEST_CASE("token types and decoder ids are tensors of the batch", "[data][ids]") {
  const tests::Folder folder;
  folder.write(
      "a.jsonl",
      "{\"input_ids\": [1, 2], \"token_type_ids\": [0, 1], \"decoder_input_ids\": [0, 7, 8], \"labels\": [7, 8, 9]}\n"
      "{\"input_ids\": [3], \"token_type_ids\": [2], \"decoder_input_ids\": [0, 5]}\n");
  const auto data = good_data("{type: ids, path: a.jsonl}");
  CHECK(names_of(*data) == std::vector<std::string>{kInput, kTarget, kAttentionMask, kTokenTypes, kDecoderInput});
  CHECK(data->signature().at(kTokenTypes).vocab_size == 3);
  CHECK(data->signature().at(kDecoderInput).max_length == 3);
  CHECK(data->signature().max_length() == 2);
  CHECK(fetched(*data, {0, 1}, kInput) == Values{1, 2, 3, 0});
  CHECK(fetched(*data, {0, 1}, kTokenTypes) == Values{0, 1, 2, 0});
  CHECK(fetched(*data, {0, 1}, kDecoderInput) == Values{0, 7, 8, 0, 5, 0});
  CHECK(fetched(*data, {0, 1}, kTarget) == Values{7, 8, 9, 5, kPad, kPad});
  CHECK(data->predicted_positions(1) == 2);
}

TEST_CASE("ids beyond max_seq_len are cut, dropped or refused", "[data][ids]") {
  const tests::Folder folder;
  folder.write("a.jsonl", "{\"input_ids\": [1, 2, 3, 4]}\n{\"input_ids\": [5, 6]}\n");
  const auto with = [](const std::string& policy) {
    return "{type: ids, path: a.jsonl, max_seq_len: 3, too_long: " + policy + "}";
  };
  const auto cut = good_data(with("cut"));
  CHECK(cut->describe() == "1 file, 50 B, 2 lines of 2 to 3 ids (1 cut)");
  CHECK(fetched(*cut, {0}, kInput) == Values{1, 2, 3});
  CHECK(fetched(*cut, {0}, kTarget) == Values{2, 3, kPad});  // as if the line ended there
  CHECK(good_data(with("drop"))->size() == 1);
  CHECK(build_data(with("error")).messages ==
        "data.yaml:1:54: error: 1 line of data.train is longer than max_seq_len 3, the longest has 4 ids\n"
        "  hint: raise max_seq_len, or use too_long: cut\n");
}

TEST_CASE("packed lines share rows, first fit, with positions of their own", "[data][ids][packing]") {
  const tests::Folder folder;
  folder.write("a.jsonl",
               "{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": [4, 5, 6, 7]}\n{\"input_ids\": [8, 9], \"labels\": "
               "[-100, 9]}\n{\"input_ids\": [1, 1]}\n");
  const auto data = good_data("{type: ids, path: a.jsonl, max_seq_len: 5, packing: true}");
  CHECK(data->size() == 3);
  CHECK(data->records() == 3);  // none is left out
  CHECK(data->describe() == "1 file, 118 B, 4 lines of 2 to 4 ids in 3 rows, 73 % full");
  CHECK(data->signature().padded());
  CHECK(names_of(*data) == std::vector<std::string>{kInput, kTarget, kAttentionMask, kPositions});
  CHECK(data->length_of(0) == 5);
  CHECK(fetched(*data, {0, 1, 2}, kInput) == Values{1, 2, 3, 8, 9, 4, 5, 6, 7, 0, 1, 1, 0, 0, 0});
  CHECK(fetched(*data, {0, 1, 2}, kTarget) ==
        Values{2, 3, kPad, 9, kPad, 5, 6, 7, kPad, kPad, 1, kPad, kPad, kPad, kPad});
  CHECK(fetched(*data, {0, 1, 2}, kPositions) == Values{0, 1, 2, 0, 1, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
  CHECK(data->record_of(0)->number == 1);
  const auto val = good_data("{type: ids, path: a.jsonl, max_seq_len: 5}", {"val", data.get()});
  CHECK(val->size() == 4);
  CHECK(fetched(*val, {0, 2}, kPositions) == Values{0, 1, 2, 0, 1, 2});
}

TEST_CASE("a masked line can be packed, a decoder's cannot", "[data][ids][packing]") {
  const tests::Folder folder;
  folder.write("a.jsonl", "{\"input_ids\": [1, 2], \"attention_mask\": [1, 0]}\n{\"input_ids\": [3]}\n");
  folder.write("b.jsonl", "{\"input_ids\": [1, 2], \"decoder_input_ids\": [1]}\n");
  const auto data = good_data("{type: ids, path: a.jsonl, max_seq_len: 4, packing: true}");
  CHECK(fetched(*data, {0}, kAttentionMask) == Values{1, 0, 1});
  CHECK(data->signature().at(kAttentionMask).scattered);
  CHECK(build_data("{type: ids, path: b.jsonl, max_seq_len: 4, packing: true}").messages ==
        "data.yaml:1:53: error: packing is true, but the lines of data.train have decoder_input_ids\n"
        "  hint: remove packing: only ids of one sequence are packed\n");
  CHECK(build_data("{type: ids, path: a.jsonl, packing: true}").messages ==
        "data.yaml:1:37: error: packing needs max_seq_len, the length of a row\n"
        "  hint: set max_seq_len to the model's context length\n");
}

TEST_CASE("a batch is padded to a multiple of a length", "[data][ids]") {
  const tests::Folder folder;
  folder.write("a.jsonl", "{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": [4, 5, 6]}\n");
  const auto data = good_data("{type: ids, path: a.jsonl, pad_to_multiple_of: 4}");
  CHECK(data->signature().padded());
  CHECK(data->signature().max_length() == 4);
  CHECK(fetched(*data, {1}, kInput) == Values{4, 5, 6, 0});
  CHECK(fetched(*data, {1}, kTarget) == Values{5, 6, kPad, kPad});
  CHECK(fetched(*data, {1}, kAttentionMask) == Values{1, 1, 1, 0});
  CHECK_FALSE(good_data("{type: ids, path: a.jsonl, pad_to_multiple_of: 3}")->signature().padded());
}

TEST_CASE("bad lines are skipped where that is asked for, and told by kind", "[data][ids]") {
  const tests::Folder folder;
  folder.write(
      "a.jsonl",
      "{\"input_ids\": [1, 2]}\n{\"input_ids\": [1.5]}\n[]\n{\"input_ids\": [2.5, 1]}\n{\"input_ids\": [3]}\n");
  const auto built = build_data("{type: ids, path: a.jsonl, on_bad_record: skip}");
  REQUIRE(built.data != nullptr);
  CHECK(built.data->size() == 2);
  CHECK(built.data->record_of(1)->number == 5);
  CHECK(built.messages ==
        "data.yaml:1:43: warning: data.train: skipped 3 of 5 records; a.jsonl:2: input_ids[0] is 1.5, which is no "
        "integer (2 like it); a.jsonl:3: not an object with input_ids\n");
  folder.write("b.jsonl", "[]\n");
  CHECK(build_data("{type: ids, path: b.jsonl, on_bad_record: skip}").messages.find("has no usable line") !=
        std::string::npos);
}

TEST_CASE("parts of a file of ids share its vocabulary", "[data][ids]") {
  const tests::Folder folder;
  folder.write("a.jsonl", "{\"input_ids\": [1]}\n{\"input_ids\": [2]}\n{\"input_ids\": [3]}\n{\"input_ids\": [9]}\n");
  const auto train = good_data("{type: ids, path: a.jsonl, split: ':50%'}");
  const auto val = good_data("{type: ids, path: a.jsonl, split: '50%:'}", {"val", train.get()});
  CHECK(train->size() == 2);
  CHECK(train->signature().at(kInput).vocab_size == 10);
  CHECK(fetched(*val, {0, 1}, kInput) == Values{3, 9});
  CHECK(val->record_of(0)->number == 3);
}

TEST_CASE("bad lines of ids are named by file and line", "[data][ids]") {
  struct Case {
    const char* name;
    std::string line;
    std::string message;
  };
  const Case cases[] = {
      {"no object", "[1, 2]", "not an object with input_ids"},
      {"no ids", R"({"labels": [1]})", "input_ids is missing"},
      {"a text", R"({"input_ids": "1 2"})", "input_ids is not a list of integers"},
      {"nothing", R"({"input_ids": []})", "input_ids is empty"},
      {"a fraction", R"({"input_ids": [1, 1.5]})", "input_ids[1] is 1.5, which is no integer"},
      {"a negative id", R"({"input_ids": [1, -1]})",
       "input_ids[1] is -1, and an id is 0 or more and below vocab_size 10"},
      {"a large id", R"({"input_ids": [1, 10]})",
       "input_ids[1] is 10, and an id is 0 or more and below vocab_size 10\n  hint: if it is a right one, set a larger "
       "vocab_size, in data.train as well"},
      {"a large label", R"({"input_ids": [1, 2], "labels": [1, 11]})",
       "labels[1] is 11, and a label is -100, or 0 or more and below vocab_size 10\n  hint: if it is a right one, set "
       "a larger vocab_size, in data.train as well"},
      {"a short list", R"({"input_ids": [1, 2], "labels": [1]})", "labels has 1 value, and input_ids has 2"},
      {"a long mask", R"({"input_ids": [1], "attention_mask": [1, 1]})",
       "attention_mask has 2 values, and input_ids has 1"},
      {"labels beside a decoder", R"({"input_ids": [1], "decoder_input_ids": [1, 2], "labels": [1]})",
       "labels has 1 value, and decoder_input_ids has 2"},
      {"a mask of 2", R"({"input_ids": [1], "attention_mask": [2]})",
       "attention_mask[0] is 2, and a mask holds 0 and 1"},
      {"all masked", R"({"input_ids": [1], "attention_mask": [0]})", "attention_mask has no 1"},
  };
  const tests::Folder folder;
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      folder.write("a.jsonl", "{\"input_ids\": [1, 2]}\n\n" + c.line + "\n");
      CHECK(build_data("{type: ids, path: a.jsonl, vocab_size: 10}").messages ==
            "data.yaml:1:19: error: a.jsonl:3: " + c.message + "\n");
    }
  }
  folder.write("a.jsonl", "{\"input_ids\": [1, 2]\n");
  CHECK(build_data("{type: ids, path: a.jsonl}")
            .messages.starts_with("data.yaml:1:19: error: a.jsonl:1: it is not valid JSON from byte "));
  folder.write("a.jsonl", "{\"input_ids\": [1]}\n{\"input_ids\": [1], \"token_type_ids\": [0]}\n");
  CHECK(build_data("{type: ids, path: a.jsonl}").messages ==
        "data.yaml:1:19: error: a.jsonl:2: token_type_ids is here, but not in the first line of data.train\n"
        "  hint: give all lines token_type_ids, or none\n");
  folder.write("a.jsonl", "");
  CHECK(build_data("{type: ids, path: a.jsonl}").messages == "data.yaml:1:19: error: \"a.jsonl\" is empty\n");
  folder.write("a.jsonl", "\n \n");
  CHECK(build_data("{type: ids, path: a.jsonl}").messages ==
        "data.yaml:1:19: error: data.train has no usable line, of 0 lines that are not empty\n"
        "  hint: use more lines\n");
}
