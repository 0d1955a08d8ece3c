#include "runner/core/platform/line_source.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "tests/components/data/building.h"
#include "tests/support/folder.h"

using runner::core::LineSource;
using tests::build_data;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

namespace {

std::string compressed(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 32, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd_compressed(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string lines_of(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "{\"input_ids\": [" + std::to_string(i % 90) + ", 7]}\n";
  return text;
}

}  // namespace

TEST_CASE("a file is read from any line on", "[data][line_source]") {
  const tests::Folder folder;
  const std::string text = "a\r\n\n" + std::string(300'000, 'b') + "\nc\nno end";
  folder.write("a.txt", text);
  folder.write("a.txt.gz", compressed(text));
  folder.write("a.txt.zst", zstd_compressed(text));
  for (const char* path : {"a.txt", "a.txt.gz", "a.txt.zst"}) {
    LineSource whole(path);
    for (int before = 0; before < 6; ++before) {
      INFO(path << ", behind line " << before);
      LineSource source(path, whole.end());
      CHECK(source.end().offset == whole.end().offset);
      const auto line = whole.next(), again = source.next();
      REQUIRE(line.has_value() == (before < 5));
      CHECK(again == line);
      CHECK(source.number() == whole.number());
      CHECK(source.end().offset == whole.end().offset);
    }
    CHECK_FALSE(LineSource(path, {1'000'000, 9}).next());  // behind its end
  }
}

TEST_CASE("lines are the same from a plain file and a compressed one", "[data][line_source]") {
  const tests::Folder folder;
  const std::string text = "a\r\n\n" + std::string(300'000, 'b') + "\nno end";
  folder.write("a.txt", text);
  folder.write("a.txt.gz", compressed(text.substr(0, 10)) + compressed(text.substr(10)));  // two members
  folder.write("a.txt.zst", zstd_compressed(text.substr(0, 10)) + zstd_compressed(text.substr(10)));
  for (const char* path : {"a.txt", "a.txt.gz", "a.txt.zst"}) {
    INFO(path);
    LineSource source(path);
    CHECK(source.next() == "a\r");
    CHECK(source.next() == "");
    CHECK(source.next() == std::string(300'000, 'b'));
    CHECK(source.next() == "no end");
    CHECK(source.number() == 4);
    CHECK_FALSE(source.next());
    CHECK(source.problem().empty());
    CHECK(source.bytes() == static_cast<std::int64_t>(text.size()));
  }
}

TEST_CASE("what follows the end of compressed bytes is not passed over", "[data][line_source]") {
  const tests::Folder folder;
  const auto read = [&folder](const std::string& bytes) {
    folder.write("a.gz", bytes);
    LineSource source("a.gz");
    int lines = 0;
    while (source.next()) ++lines;
    return std::to_string(lines) + " " + source.problem();
  };
  const std::string one = compressed("a\nb\n"), two = compressed("c\n");
  const std::string other = "the compressed file is damaged: other bytes follow the end of compressed ones";
  CHECK(read(one + two) == "3 ");
  CHECK(read(one + std::string(512, '\0')) == "2 ");
  CHECK(read(one + "x") == "2 " + other);
  CHECK(read(one + "\x1e" + two.substr(1)) == "2 " + other);
  CHECK(read(one + "\x1f\x8c" + two.substr(2)).starts_with("2 the compressed file is damaged: "));
  CHECK(read(one + two.substr(0, 5)) == "2 the compressed file is cut short");
  CHECK(read("") == "0 ");
}

TEST_CASE("a file of Zstandard says why it cannot be unpacked", "[data][line_source]") {
  const tests::Folder folder;
  const auto read = [&folder](const std::string& bytes) {
    folder.write("a.zst", bytes);
    LineSource source("a.zst");
    int lines = 0;
    while (source.next()) ++lines;
    return std::to_string(lines) + " " + source.problem();
  };
  const std::string one = zstd_compressed("a\nb\n"), two = zstd_compressed("c\n");
  CHECK(read(one + two) == "3 ");
  CHECK(read("") == "0 ");
  CHECK(read("a\nb\nand what follows") == "0 not compressed with zstd, in spite of its name");
  CHECK(read(one + "other bytes") == "2 the compressed file is damaged: other bytes follow the end of compressed ones");
  for (std::size_t bytes = 1; bytes < one.size(); ++bytes) {
    INFO("cut at " << bytes);
    CHECK_THAT(read(one.substr(0, bytes)), Catch::EndsWith(" the compressed file is cut short"));
    CHECK_THAT(read(two + one.substr(0, bytes)), Catch::EndsWith(" the compressed file is cut short"));
  }
  // A frame whose window, 2 GiB, is larger than what is given to it.
  const std::string wide = std::string("\x28\xB5\x2F\xFD\x00\xA8", 6) + std::string("\x09\x00\x00", 3) + "x";
  CHECK(read(wide) == "0 the compressed file needs more than 128 MiB to be unpacked: it was written with --long");
}

TEST_CASE("a compressed file of records is one of a set", "[data][ids]") {
  const tests::Folder folder;
  folder.write("a.jsonl.gz", compressed(lines_of(2)));
  folder.write("b.jsonl", "{\"input_ids\": [5, 5]}\n");
  const auto data = good_data("{type: ids, path: ['*.jsonl.gz', b.jsonl]}");
  CHECK(fetched(*data, {0, 1, 2}, components::kInput) == Values{0, 7, 1, 7, 5, 5});
  CHECK(data->describe() == "2 files, 66 B, 3 lines of 2 ids");
}

TEST_CASE("a compressed file that is cut short or damaged is named at any byte", "[data][ids]") {
  const tests::Folder folder;
  const std::string whole = compressed(lines_of(500));
  for (std::size_t bytes = 1; bytes < whole.size(); bytes += 1 + bytes / 4) {
    INFO("cut at " << bytes);
    folder.write("a.jsonl.gz", whole.substr(0, bytes));
    const auto built = build_data("{type: ids, path: a.jsonl.gz, on_bad_record: skip}");
    CHECK(built.data == nullptr);
    CHECK(built.messages.find("a.jsonl.gz") != std::string::npos);
  }
  std::string damaged = whole;
  damaged[whole.size() - 6] ^= 1;  // of the checksum
  folder.write("a.jsonl.gz", damaged);
  CHECK(build_data("{type: ids, path: a.jsonl.gz}").messages.find("the compressed file is damaged: ") !=
        std::string::npos);
  folder.write("a.jsonl.gz", lines_of(3));
  CHECK(build_data("{type: ids, path: a.jsonl.gz}").messages.find("not compressed with gzip, in spite of its name") !=
        std::string::npos);
}

TEST_CASE("a record without an end is refused before it fills the memory", "[data][ids]") {
  const tests::Folder folder;
  // Zeros pack a thousandfold: 100 MB of one line.
  folder.write("a.jsonl.gz", compressed(std::string(100'000'000, '0')));
  const auto built = build_data("{type: ids, path: a.jsonl.gz, on_bad_record: skip}");
  CHECK(built.data == nullptr);
  CHECK(built.messages.find("a.jsonl.gz:1: longer than 33.6 MB, the most that one record may have") !=
        std::string::npos);
}

TEST_CASE("a file of line ends is refused before it is read whole", "[data][ids]") {
  const tests::Folder folder;
  // They pack a thousandfold: 100 MB, after a record. Blanks are no better.
  const std::string record = "{\"input_ids\": [1, 7]}\n";
  folder.write("ends.jsonl.gz", compressed(record + std::string(100'000'000, '\n')));
  std::string blanks;
  while (blanks.size() < 5'000'000) blanks += std::string(1000, ' ') + "\r\n";
  folder.write("blanks.jsonl", blanks + record);
  const struct {
    const char *path, *message;
  } cases[] = {
      {"ends.jsonl.gz", "ends.jsonl.gz:4194306: more than 4.2 MB of blank lines in a row"},
      {"blanks.jsonl", "blanks.jsonl:4186: more than 4.2 MB of blank lines in a row"},
  };
  for (const auto& c : cases) {
    const auto [file, line] = std::pair<std::string, std::string>(c.path, c.message);
    const auto built = build_data("{type: ids, path: " + file + ", on_bad_record: skip}");
    INFO(built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(line) != std::string::npos);
  }
  const std::string gap(4'000'000, '\n');
  folder.write("gaps.jsonl", record + gap + record + gap + record);
  CHECK(good_data("{type: ids, path: gaps.jsonl}")->size() == 3);
}
