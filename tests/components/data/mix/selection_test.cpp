#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "components/tensor/positions.h"
#include "components/tensor/tensor_spec.h"
#include "components/tokenizer/tokenizer.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::kAttentionMask;
using components::kInput;
using components::kTarget;
using tests::build_data;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

namespace {

constexpr double kPad = components::kPadTarget;

/// A folder with the tokenizer of the examples and data of several kinds.
struct Folder : tests::TokenizerFolder {
  Folder() {
    write("a.jsonl", "{\"text\": \"abc abc abc\"}\n{\"text\": \"a b\"}\n");
    write("b.jsonl", "{\"prompt\": \"x\", \"completion\": \"yz\"}\n");
    write("lines.txt", "one two\n\nthree\n");
    write("a.csv", "x,y\n1,red\n2,blue\n3,red\n");
    write("b.csv", "x,y\n9,blue\n");
  }
};

std::string tokenizer(const std::string& more = "") {
  return "tokenizer: {type: file, path: tokenizer.json" + more + "}";
}

std::string records(const std::string& path, const std::string& more = "") {
  return "{type: jsonl, path: " + path + ", " + tokenizer() + more + "}";
}

std::int64_t id_of(const components::data::Dataset& data, const char* token) {
  return data.tokenizer()->id_of(token).value();
}

}  // namespace

TEST_CASE("a batch of several sets is padded as one set pads it", "[selection]") {
  const Folder folder;
  const auto one = good_data(records("[a.jsonl, b.jsonl]"));
  const auto several = good_data("{type: concat, sets: [" + records("a.jsonl") + ", " + records("b.jsonl") + "]}");
  REQUIRE(several->size() == 3);
  CHECK(several->signature().max_length() == one->signature().max_length());
  for (const std::vector<std::int64_t>& samples :
       std::vector<std::vector<std::int64_t>>{{0, 1, 2}, {2, 0}, {1, 2, 1}, {2}}) {
    for (const char* tensor : {kInput, kTarget, kAttentionMask}) {
      INFO(tensor);
      CHECK(fetched(*several, samples, tensor) == fetched(*one, samples, tensor));
    }
  }
  CHECK(several->length_of(2) == one->length_of(2));
  CHECK(several->record_of(2)->file == "b.jsonl");
  CHECK(several->parts_of(0).front().record->file == "a.jsonl");
  CHECK(several->account().records == 3);
  CHECK(several->describe().starts_with("3 samples in 2 sets: 1 file, "));
}

TEST_CASE("sets with weights alternate, and end with the first or the last of them", "[selection]") {
  const Folder folder;
  const std::string sets = "{type: concat, sets: [" + records("a.jsonl") + ", " + records("b.jsonl") + "], weights: ";
  const auto order = [&](const std::string& more) {
    const auto data = good_data(sets + more + "}");
    std::string found;
    for (std::int64_t i = 0; i < data->size(); ++i) {
      const auto record = data->record_of(i);
      found += record->file.substr(0, 1) + std::to_string(record->number) + " ";
    }
    return found;
  };
  CHECK(order("[2, 1]") == "a1 b1 a2 ");
  CHECK(order("[1, 3]") == "b1 a1 ");
  CHECK(order("[1, 3], stopping: all") == "b1 a1 b1 b1 b1 a2 ");
  // Known before as many are numbered.
  CHECK(build_data(sets + "[1.0e-300, 1], stopping: all}").messages.find("more than 1,073,741,824 samples") !=
        std::string::npos);
  CHECK(build_data(sets + "[1, 2, 3]}").messages.find("data.train has 2 sets and 3 weights") != std::string::npos);
}

TEST_CASE("sets that are joined share classes and statistics of the first", "[selection]") {
  const Folder folder;
  const auto table = [](const char* path) { return "{type: csv_table, path: " + std::string(path) + ", target: y}"; };
  const auto data = good_data("{type: concat, sets: [" + table("a.csv") + ", " + table("b.csv") + "]}");
  REQUIRE(data->size() == 4);
  CHECK(fetched(*data, {3}, kTarget) == fetched(*data, {1}, kTarget));
  CHECK(data->class_name(0) == "blue");
}

TEST_CASE("sets of different kinds are not joined", "[selection]") {
  const Folder folder;
  CHECK(build_data("{type: concat, sets: [" + records("a.jsonl") + ", " + records("b.jsonl", ", packing: true") + "]}")
            .messages ==
        "data.yaml:1:100: error: data.train: set 2 has position_ids, and the first has not\n"
        "  hint: give both packing: true, or none\n");
}

TEST_CASE("streamed samples are not numbered", "[selection]") {
  const Folder folder;
  const std::string of = "{type: subset, samples: 1, of: ";
  CHECK(build_data(of + records("a.jsonl", ", streaming: true") + "}").messages ==
        "data.yaml:1:119: error: data.train is streamed, and subset and fold number their samples\n"
        "  hint: remove streaming, or use the set as it is\n");
}

TEST_CASE("a subset has the first samples, or some at random", "[selection]") {
  const Folder folder;
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "line " + std::to_string(i) + "\n";
  folder.write("many.txt", lines);
  const std::string of = "{type: subset, of: {type: text_lines, path: many.txt, max_seq_len: 16}, ";
  const auto all = good_data("{type: text_lines, path: many.txt, max_seq_len: 16}");
  const auto first = good_data(of + "samples: 3}");
  REQUIRE(first->size() == 3);
  CHECK(fetched(*first, {0, 2}, kInput) == fetched(*all, {0, 2}, kInput));
  const auto drawn = good_data(of + "fraction: 0.2, random: true, seed: 5}");
  REQUIRE(drawn->size() == 20);
  const auto numbers = [](const components::data::Dataset& data) {
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < data.size(); ++i) found.push_back(data.record_of(i)->number);
    return found;
  };
  const std::vector<std::int64_t> found = numbers(*drawn);
  CHECK(std::is_sorted(found.begin(), found.end()));
  CHECK(found == numbers(*good_data(of + "samples: 20, random: true, seed: 5}")));
  CHECK(found != numbers(*good_data(of + "samples: 20, random: true, seed: 6}")));
  CHECK(build_data(of + "samples: 101}").messages ==
        "data.yaml:1:82: error: data.train is to have 101 samples of 100\n"
        "  hint: use samples: 100 or less, or fraction\n");
  CHECK(build_data(of + "samples: 1, fraction: 0.5}").messages ==
        "data.yaml:1:1: error: data.train needs samples or fraction, not both\n"
        "  hint: samples: 1000 takes that many, fraction: 0.1 a tenth\n");
}

TEST_CASE("lines of text are the texts of a tokenizer", "[selection]") {
  const Folder folder;
  folder.write("same.jsonl", "{\"text\": \"one two\"}\n{\"text\": \"three\"}\n");
  const auto lines = good_data("{type: text_lines, path: lines.txt, max_seq_len: 64, " + tokenizer() + "}");
  const auto texts = good_data(records("same.jsonl"));
  REQUIRE(lines->size() == 2);
  CHECK(fetched(*lines, {0, 1}, kInput) == fetched(*texts, {0, 1}, kInput));
  CHECK(fetched(*lines, {0, 1}, kTarget) == fetched(*texts, {0, 1}, kTarget));
}

TEST_CASE("a recipe says what a tokenizer adds, fills and cuts", "[selection]") {
  const Folder folder;
  const auto with = [](const std::string& of_tokenizer, const std::string& more = "") {
    return good_data("{type: jsonl, path: a.jsonl, " + tokenizer(of_tokenizer) + more + "}");
  };
  const auto usual = with("");
  const Values first = fetched(*usual, {0}, kInput), second = fetched(*usual, {1}, kInput);
  const auto end = static_cast<double>(id_of(*usual, "<|im_end|>"));
  REQUIRE(second.size() > 2);
  REQUIRE(first.size() > second.size());
  CHECK(second.back() == end);

  SECTION("the end token fills where there is no padding token") {
    Values rows = second;
    rows.resize(first.size(), end);
    const Values both = fetched(*usual, {1, 0}, kInput);
    CHECK(Values(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(first.size())) == rows);
  }
  SECTION("another token") {
    const auto filled = with(", pad_token: <|im_start|>");
    CHECK(fetched(*filled, {1, 0}, kInput)[first.size() - 1] == static_cast<double>(id_of(*filled, "<|im_start|>")));
  }
  SECTION("no special tokens") {
    CHECK(fetched(*with(", add_special_tokens: false"), {1}, kInput) == Values(second.begin(), second.end() - 1));
  }
  SECTION("in front") {
    const auto left = with(", padding_side: left");
    Values rows(first.size() - second.size(), end), targets(first.size() - second.size(), kPad);
    rows.insert(rows.end(), second.begin(), second.end());
    const Values target = fetched(*usual, {1}, kTarget);
    targets.insert(targets.end(), target.begin(), target.end());
    const Values inputs = fetched(*left, {1, 0}, kInput), outputs = fetched(*left, {1, 0}, kTarget);
    const auto width = static_cast<std::ptrdiff_t>(first.size());
    CHECK(Values(inputs.begin(), inputs.begin() + width) == rows);
    CHECK(Values(inputs.begin() + width, inputs.end()) == first);
    CHECK(Values(outputs.begin(), outputs.begin() + width) == targets);
    CHECK(fetched(*left, {1, 0}, kAttentionMask).front() == 0);
    CHECK(left->signature().find(kAttentionMask)->scattered);
  }
  SECTION("cut at the beginning") {
    const auto left = with(", truncation_side: left", ", max_seq_len: 3");
    CHECK(fetched(*left, {0}, kInput) == Values(first.end() - 3, first.end()));
    CHECK(fetched(*with("", ", max_seq_len: 3"), {0}, kInput) == Values(first.begin(), first.begin() + 3));
  }
  SECTION("a token that is not there") {
    CHECK(build_data("{type: jsonl, path: a.jsonl, " + tokenizer(", pad_token: <none>") + "}").messages ==
          "data.yaml:1:87: error: tokenizer: it has no token \"<none>\"\n"
          "  hint: `roux tokenizer info tokenizer.json` lists its special tokens\n");
  }
}
