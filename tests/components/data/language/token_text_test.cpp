#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/platform/files.h"
#include "tests/components/data/building.h"
#include "tests/support/folder.h"
#include "tests/support/paths.h"

using components::kInput;
using components::kTarget;
using tests::build_data;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

namespace {

constexpr const char* kPath = "recipes/examples/data/tokenizer.json";

std::string block(const std::string& tokenizer, const std::string& more) {
  return "{type: text, path: '*.txt', tokenizer: {type: file, path: " + tokenizer + "}" + more + "}";
}

}  // namespace

TEST_CASE("windows go over the tokens of all files, each encoded by itself", "[data][text]") {
  const std::string path = tests::source_dir() + "/" + kPath;
  const auto tokenizer = components::tokenizer::read_tokenizer(path).value();
  const std::string first = "The quick brown fox. ", second = "It jumps, and jumps again\n";
  std::vector<std::int32_t> ids = tokenizer->encode(first).value().ids;
  const std::vector<std::int32_t> more = tokenizer->encode(second).value().ids;
  ids.insert(ids.end(), more.begin(), more.end());
  const tests::Folder folder;
  folder.write("a.txt", first);
  folder.write("b.txt", second);
  const auto data = good_data(block(path, ", max_seq_len: 4, stride: 3"));
  CHECK(data->size() == static_cast<std::int64_t>(ids.size() - 5) / 3 + 1);
  CHECK(data->tokens_per_sample() == 4);
  CHECK(data->signature().at(kInput).vocab_size == tokenizer->id_limit());
  CHECK(data->files() == std::vector<std::string>{"a.txt", "b.txt", path});
  for (std::int64_t i = 0; i < data->size(); ++i) {
    const auto at = ids.begin() + i * 3;
    CHECK(fetched(*data, {i}, kInput) == Values(at, at + 4));
    CHECK(fetched(*data, {i}, kTarget) == Values(at + 1, at + 5));
  }
  CHECK(data->decode(data->encode("jumps again")) == "jumps again");
}

TEST_CASE("a split cuts the tokens, and meets the other", "[data][text]") {
  const std::string path = tests::source_dir() + "/" + kPath;
  const tests::Folder folder;
  folder.write("a.txt", "one two three four five six seven eight nine ten eleven twelve thirteen fourteen");
  const auto all = good_data(block(path, ", max_seq_len: 1"));
  const auto train = good_data(block(path, ", max_seq_len: 1, split: ':50%'"));
  const auto val = good_data(block(path, ", max_seq_len: 1, split: '50%:'"), {.name = "val", .train = train.get()});
  // Each has one sample fewer than tokens.
  CHECK(train->size() + val->size() == all->size() - 1);
  CHECK(fetched(*val, {0}, kInput) == fetched(*all, {train->size() + 1}, kInput));
}

TEST_CASE("text that cannot be tokens says why", "[data][text]") {
  const std::string path = tests::source_dir() + "/" + kPath;
  const tests::Folder folder;
  folder.write("a.txt", "abc");
  const auto said = [](const std::string& text) { return build_data(text).messages; };
  CHECK(said(block(path, ", max_seq_len: 99")).find("and a sample takes max_seq_len + 1 = 100") != std::string::npos);
  CHECK(said(block(path, ", max_seq_len: 1, streaming: true")).find("is streamed, but tokens of a tokenizer") !=
        std::string::npos);
  CHECK(said(block("none.json", ", max_seq_len: 1")).find("tokenizer: ") != std::string::npos);
  folder.write("b.txt", "\xff\xfe");
  CHECK(said(block(path, ", max_seq_len: 1")).find("b.txt: ") != std::string::npos);
}
