#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <thread>

#include "runner/core/error.h"
#include "runner/train/data/loader.h"
#include "tests/components/data/building.h"
#include "tests/support/folder.h"

using tests::build_data;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

namespace {

/// Numbers as little-endian bytes.
template <typename Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  std::string bytes;
  for (const Number number : numbers) {
    for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xFF);
  }
  return bytes;
}

template <typename Number>
std::vector<Number> range(Number from, Number to) {
  std::vector<Number> numbers;
  for (Number n = from; n < to; ++n) numbers.push_back(n);
  return numbers;
}

}  // namespace

TEST_CASE("token files give windows and the same windows one token later", "[data][tokens]") {
  const tests::Folder folder;
  folder.write("a.bin", bytes_of<std::uint16_t>({1, 2, 300, 50256}));
  folder.write("b.bin", bytes_of<std::uint16_t>({65535, 6, 7, 8}));
  const auto data = good_data("{type: tokens, path: '*.bin', vocab_size: 65536, max_seq_len: 3}");
  CHECK(data->size() == 2);
  CHECK(data->tokens_per_sample() == 3);
  CHECK(data->describe() == "2 files, 16 B, 2 samples of 3 tokens");
  CHECK(data->files() == std::vector<std::string>{"a.bin", "b.bin"});
  CHECK(fetched(*data, {0, 1}, "input") == Values{1, 2, 300, 50256, 65535, 6});
  CHECK(fetched(*data, {1, 0}, "target") == Values{65535, 6, 7, 2, 300, 50256});
  CHECK(data->signature().at(components::kInput).vocab_size == 65536);
  CHECK(data->signature().max_length() == 3);
}

TEST_CASE("tokens of 32 bits, behind a header, are read the same", "[data][tokens]") {
  const tests::Folder folder;
  folder.write("plain.bin", bytes_of<std::uint32_t>({1, 70000, 3, 4, 5}));
  for (const int header : {0, 1, 6, 1024}) {
    DYNAMIC_SECTION(header << " bytes of header") {
      folder.write("long.bin",
                   std::string(static_cast<std::size_t>(header), 'x') + bytes_of<std::uint32_t>({1, 70000, 3, 4, 5}));
      const auto data = good_data("{type: tokens, path: long.bin, dtype: uint32, vocab_size: 70001, max_seq_len: 2, " +
                                  ("header_bytes: " + std::to_string(header)) + "}");
      CHECK(fetched(*data, {0, 1}, "target") == Values{70000, 3, 4, 5});
    }
  }
}

TEST_CASE("tokens of another type than dtype says are refused", "[data][tokens]") {
  const tests::Folder folder;
  const auto swapped = [](std::string bytes, std::size_t size) {
    for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
      std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                   bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
    }
    return bytes;
  };
  const std::string npy("\x93NUMPY\x01\x00\x76\x00", 10);
  struct Case {
    const char *name, *dtype;
    std::int64_t vocab_size;
    std::string bytes, said, hint;
  };
  const std::string as_dtype = "as uint16 or uint32, which dtype accepts",
                    little = "write the tokens as little-endian ";
  const Case cases[] = {
      {"uint16", "uint16", 50257, bytes_of(range<std::uint16_t>(0, 400)), "", ""},
      {"uint32", "uint32", 128256, bytes_of(range<std::uint32_t>(65400, 65800)), "", ""},
      {"uint32", "uint16", 50257, bytes_of(range<std::uint32_t>(0, 400)),
       "looks like uint32: every second uint16 of it is 0", "write dtype: uint32"},
      {"a zero", "uint16", 50257, bytes_of<std::uint16_t>(std::vector<std::uint16_t>(100, 0)), "", ""},
      {"int64", "uint16", 50257, bytes_of(range<std::uint64_t>(0, 400)),
       "looks like int64: every second uint32 of it is 0", little + "uint16 or uint32, which dtype accepts"},
      {"int64", "uint32", 128256, bytes_of(range<std::uint64_t>(65400, 65800)),
       "looks like int64: every second uint32 of it is 0", little + "uint16 or uint32, which dtype accepts"},
      {"uint16", "uint32", 50257, bytes_of(range<std::uint16_t>(1000, 1400)),
       "looks like uint16: as uint32 its tokens are not below vocab_size", "write dtype: uint16"},
      {"big-endian", "uint16", 2000, swapped(bytes_of(range<std::uint16_t>(1000, 1400)), 2),
       "looks big-endian: its tokens are below vocab_size with their bytes exchanged only", little + "uint16"},
      {"big-endian uint32", "uint16", 50257, swapped(bytes_of(range<std::uint32_t>(0, 400)), 4),
       "looks like big-endian uint32: every second uint16 of it is 0",
       little + "uint16 or uint32, which dtype accepts"},
      {"bytes", "uint16", 256, bytes_of(range<std::uint8_t>(0, 200)),
       "looks like uint8: as uint16 its tokens are not below vocab_size", "write the tokens " + as_dtype},
      {"NumPy", "uint16", 50257, npy + std::string(118, ' ') + bytes_of(range<std::uint16_t>(0, 400)),
       "is a NumPy file, which begins with a header", "write header_bytes: 128"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name << " as " << c.dtype) {
      folder.write("a.bin", c.bytes);
      const auto found = build_data("{type: tokens, path: a.bin, max_seq_len: 4, dtype: " + std::string(c.dtype) +
                                    ", vocab_size: " + std::to_string(c.vocab_size) + "}");
      CHECK((found.data != nullptr) == c.said.empty());
      if (c.said.empty()) continue;
      CHECK(found.messages.find("\"a.bin\" " + c.said) != std::string::npos);
      CHECK(found.messages.find("hint: " + c.hint) != std::string::npos);
    }
  }
}

TEST_CASE("a long window is copied whole", "[data][tokens]") {
  const tests::Folder folder;
  folder.write("a.bin", bytes_of(range<std::uint16_t>(0, 400)));
  folder.write("b.bin", bytes_of(range<std::uint16_t>(400, 1001)));
  for (const int length : {1, 7, 31, 64, 333, 1000}) {
    DYNAMIC_SECTION(length) {
      const auto data = good_data(
          "{type: tokens, path: '*.bin', vocab_size: 1001, stride: 1, max_seq_len: " + std::to_string(length) + "}");
      REQUIRE(data->size() == 1001 - length);
      for (const std::int64_t at : {std::int64_t{0}, data->size() / 2, data->size() - 1}) {
        const Values input = fetched(*data, {at}, "input"), target = fetched(*data, {at}, "target");
        for (int k = 0; k < length; ++k) {
          REQUIRE(input[static_cast<std::size_t>(k)] == static_cast<double>(at + k));
          REQUIRE(target[static_cast<std::size_t>(k)] == static_cast<double>(at + k + 1));
        }
      }
    }
  }
}

TEST_CASE("shares of token files are disjoint and leave nothing out", "[data][tokens]") {
  const tests::Folder folder;
  folder.write("a.bin", bytes_of(range<std::uint16_t>(0, 100)));
  folder.write("b.bin", bytes_of(range<std::uint16_t>(100, 251)));
  for (const std::string cut : {"90%", "33.3%", "1%"}) {
    DYNAMIC_SECTION(cut) {
      Values seen;
      for (const std::string& split : {":" + cut, cut + ":"}) {
        const auto data =
            good_data("{type: tokens, path: '*.bin', vocab_size: 251, max_seq_len: 1, split: '" + split + "'}");
        for (std::int64_t i = 0; i < data->size(); ++i) seen.push_back(fetched(*data, {i}, "input")[0]);
        seen.push_back(fetched(*data, {data->size() - 1}, "target")[0]);
      }
      REQUIRE(seen.size() == 251);
      for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == static_cast<double>(i));
    }
  }
  const auto whole_files =
      good_data("{type: tokens, path: '*.bin', vocab_size: 251, max_seq_len: 1, split: ':50%', split_by: files}");
  CHECK((whole_files->describe() == "1 file, 200 B, 99 samples of 1 token" ||
         whole_files->describe() == "1 file, 302 B, 150 samples of 1 token"));
}

TEST_CASE("the entropy of the tokens is in nats", "[data][tokens]") {
  const tests::Folder folder;
  folder.write("four.bin", bytes_of<std::uint16_t>({1, 2, 3, 4, 1, 2, 3, 4}));
  const auto data = good_data("{type: tokens, path: four.bin, vocab_size: 9, max_seq_len: 2}");
  CHECK(data->unigram_entropy() == Approx(std::log(4.0)).epsilon(1e-12));
}

TEST_CASE("a token outside the vocabulary is reported with its position", "[data][tokens]") {
  const tests::Folder folder;
  folder.write("a.bin", std::string(4, 'x') + bytes_of(range<std::uint16_t>(0, 50)));
  folder.write("b.bin", std::string(4, 'x') + bytes_of<std::uint16_t>({1, 2, 3, 50, 4, 5}));
  const auto data = good_data("{type: tokens, path: '*.bin', vocab_size: 50, max_seq_len: 5, header_bytes: 4}");
  CHECK_NOTHROW(fetched(*data, {0, 9}, "input"));
  CHECK_THROWS_WITH(fetched(*data, {0, 10}, "input"), "\"b.bin\" has the token 50 at byte 10, and vocab_size is 50");
  CHECK_THROWS_WITH(data->unigram_entropy(), "\"b.bin\" has the token 50 at byte 10, and vocab_size is 50");
}

TEST_CASE("a mapped file that becomes shorter is an error with its name", "[data][tokens]") {
  const tests::Folder folder;
  folder.write("shrinks.bin", bytes_of(range<std::uint16_t>(0, 20000)));
  const auto data = good_data("{type: tokens, path: shrinks.bin, vocab_size: 20000, max_seq_len: 4}");
  std::filesystem::resize_file("shrinks.bin", 4096);
  CHECK(fetched(*data, {1}, "input") == Values{4, 5, 6, 7});
  const char* message = "\"shrinks.bin\" was truncated: it ends at byte 4096, and had 40000";
  CHECK_THROWS_WITH(fetched(*data, {4000}, "input"), message);
  CHECK_THROWS_WITH(fetched(*data, {4000}, "input"), message);  // the signal is watched for on
  std::string seen;
  std::thread([&] {
    try {
      fetched(*data, {4500}, "input");
    } catch (const runner::core::RunError& error) {
      seen = error.what();
    }
  }).join();
  CHECK(seen == message);
}

TEST_CASE("errors in token files are reported at their location", "[data][tokens]") {
  const tests::Folder folder;
  folder.write("ten.bin", bytes_of(range<std::uint16_t>(0, 10)));
  folder.write("odd.bin", "12345");
  folder.write("train.bin", bytes_of(range<std::uint16_t>(0, 10)));
  const auto train = good_data("{type: tokens, path: train.bin, vocab_size: 10, max_seq_len: 4}");
  struct Case {
    const char* name;
    std::string recipe;
    std::string messages;
  };
  const Case cases[] = {
      {"half a token", "{type: tokens, max_seq_len: 4, vocab_size: 10, path: odd.bin}",
       "data.yaml:1:54: error: \"odd.bin\" has 5 bytes of tokens, not a multiple of the 2 of a uint16\n"
       "  hint: check dtype and header_bytes against the program that wrote the file\n"},
      {"another width", "{type: tokens, max_seq_len: 4, vocab_size: 10, path: odd.bin, header_bytes: 2, dtype: uint32}",
       "data.yaml:1:54: error: \"odd.bin\" has 3 bytes of tokens, not a multiple of the 4 of a uint32\n"
       "  hint: check dtype and header_bytes against the program that wrote the file\n"},
      {"a header longer than the file",
       "{type: tokens, max_seq_len: 4, vocab_size: 10, path: odd.bin, header_bytes: 6}",
       "data.yaml:1:77: error: header_bytes is 6, but \"odd.bin\" has 5 bytes\n"},
      {"too short", "{type: tokens, vocab_size: 10, path: ten.bin, max_seq_len: 10}",
       "data.yaml:1:60: error: data.train has 10 tokens, and a sample takes max_seq_len + 1 = 11\n"
       "  hint: use max_seq_len: 9 or less, or use more tokens\n"},
      {"too few files", "{type: tokens, vocab_size: 10, path: ten.bin, max_seq_len: 4, split: ':90%', split_by: files}",
       "data.yaml:1:70: error: split \":90%\" of 1 file has no whole file\n"
       "  hint: use a larger fraction, or split_by: tokens\n"},
      {"no such file", "{type: tokens, vocab_size: 10, max_seq_len: 4, path: tin.bin}",
       "data.yaml:1:54: error: no such file \"tin.bin\"\n  hint: did you mean \"ten.bin\"? a path is relative to the "
       "current "
       "folder, " +
           std::filesystem::current_path().string() + "; ${recipe_dir} is the folder of the recipe\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      CHECK(build_data(c.recipe).messages == c.messages);
      CHECK(build_data(c.recipe, {.header_only = true}).messages == c.messages);
    }
  }
  tests::BuildData options;
  options.name = "val";
  options.train = train.get();
  CHECK(build_data("{type: tokens, path: ten.bin, vocab_size: 11, max_seq_len: 4}", options).messages ==
        "data.yaml:1:43: error: vocab_size of data.val is 11, and that of data.train 10\n"
        "  hint: set the same vocab_size for both: one model reads them\n");
}
