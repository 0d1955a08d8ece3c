#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/tokenizer/tokenizer.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"
#include "tests/support/folder.h"

using components::data::Dataset;
using tests::good_data;

namespace {

/// `0+5 a.txt byte 1; 5+3 b.txt byte 1, cut`.
std::string parts_text(const Dataset& data, std::int64_t index) {
  std::string text;
  for (const auto& part : data.parts_of(index)) {
    if (!text.empty()) text += "; ";
    text += std::to_string(part.begin) + "+" + std::to_string(part.length);
    if (part.record)
      text += " " + part.record->file + " " + part.record->unit + " " + std::to_string(part.record->number);
    if (part.cut) text += ", cut";
  }
  return text;
}

std::string tokens_of(const std::vector<int>& ids) {
  std::string bytes;
  for (const int id : ids) bytes += {static_cast<char>(id), '\0'};
  return bytes;
}

}  // namespace

TEST_CASE("a window knows the files that it spans", "[data][parts]") {
  const tests::Folder folder;
  folder.write("a.txt", "0123456");
  folder.write("b.txt", "789abcdef");
  const auto text = good_data("{type: text, path: '*.txt', max_seq_len: 5}");
  CHECK(parts_text(*text, 0) == "0+5 a.txt byte 1");
  CHECK(parts_text(*text, 1) == "0+2 a.txt byte 6; 2+3 b.txt byte 1");
  const auto later = good_data("{type: text, path: '*.txt', split: '50%:', max_seq_len: 5}");
  CHECK(parts_text(*later, 0) == "0+5 b.txt byte 2");

  folder.write("a.u16", "head" + tokens_of({1, 2, 3}));
  folder.write("b.u16", "head" + tokens_of({4, 5, 6, 7}));
  const auto tokens = good_data("{type: tokens, path: '*.u16', vocab_size: 9, header_bytes: 4, max_seq_len: 4}");
  CHECK(parts_text(*tokens, 0) == "0+3 a.u16 token 1; 3+1 b.u16 token 1");

  folder.write("tokenizer.json", tests::example_tokenizer());
  folder.write("a.txt", "12");  // a token each
  folder.write("b.txt", "34567");
  const auto encoded =
      good_data("{type: text, path: '*.txt', tokenizer: {type: file, path: tokenizer.json}, max_seq_len: 3}");
  CHECK(parts_text(*encoded, 0) == "0+2 a.txt token 1; 2+1 b.txt token 1");
  CHECK(parts_text(*encoded, 1) == "0+3 b.txt token 2");
  CHECK(encoded->tokenizer() != nullptr);
}

TEST_CASE("a row knows its records, and the set what it made of all", "[data][parts]") {
  const tests::Folder folder;
  folder.write("a.jsonl",
               "{\"input_ids\": [1, 2]}\n\n{\"input_ids\": [1, 2, 3, 4, 5, 6]}\nnone\n{\"input_ids\": [3]}\n");
  const std::string begin = "{type: ids, path: a.jsonl, max_seq_len: 4, on_bad_record: skip";
  const auto cut = tests::build_data(begin + ", packing: true}").data;
  REQUIRE(cut != nullptr);
  CHECK(cut->size() == 2);
  CHECK(parts_text(*cut, 0) == "0+4 a.jsonl line 3, cut");
  CHECK(parts_text(*cut, 1) == "0+2 a.jsonl line 1; 2+1 a.jsonl line 5");
  const auto account = cut->account();
  CHECK(account.records == 4);
  CHECK(account.cut == 1);
  CHECK(account.dropped == 0);
  CHECK(account.skipped == 1);
  CHECK(account.reasons.starts_with("a.jsonl:4: "));

  const auto dropped = tests::build_data(begin + ", too_long: drop}").data;
  REQUIRE(dropped != nullptr);
  CHECK(dropped->account().dropped == 1);
  CHECK(dropped->account().records == 4);
  CHECK(parts_text(*dropped, 1) == "0+1 a.jsonl line 5");

  folder.write("lines.txt", "abc\nabcdefgh\n");
  const auto lines = good_data("{type: text_lines, path: lines.txt, max_seq_len: 5}");
  CHECK(parts_text(*lines, 1) == "0+5 lines.txt line 2, cut");
  CHECK(lines->account().cut == 1);
}
