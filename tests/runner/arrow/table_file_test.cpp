#include "runner/core/table/table_file.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/table/table_folder.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

using runner::core::Node;
using runner::core::Result;
using runner::core::table_library;
using runner::core::TableFile;
using runner::core::TableLimits;

namespace {

constexpr std::int64_t kFileBytesMax = 1 << 20;

/// Written by make.py there.
std::string files(const std::string& name) { return tests::source_dir() + "/tests/components/data/files/" + name; }

std::unique_ptr<TableFile> opened(const std::string& path, const TableLimits& limits = {}) {
  return table_library().value()->open(path, limits).value();
}

/// The rows of the rest of a file, as JSON; behind them the failure that ended it.
std::vector<std::string> rest_of(TableFile& file) {
  std::vector<std::string> rows;
  for (;;) {
    const auto some = file.next();
    if (!some) {
      rows.push_back(some.failure().message);
      return rows;
    }
    if (some.value() == nullptr) return rows;
    for (std::int64_t i = 0; i < some.value()->size(); ++i) {
      const auto record = some.value()->record(i);
      rows.push_back(record ? to_json(record.value(), -1) : record.failure().message);
    }
  }
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream stream(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(to_json(runner::core::parse_json(line).value(), -1));
  }
  return lines;
}

/// Why it cannot be opened or read, without the folder; "" where it can.
std::string problem(const std::string& path, const TableLimits& limits = {}) {
  const auto file = table_library().value()->open(path, limits);
  std::string message = file ? "" : file.failure().message;
  while (file && message.empty()) {
    const auto some = file.value()->next();
    if (some && some.value() == nullptr) break;
    if (!some) message = some.failure().message;
    for (std::int64_t i = 0; some && i < some.value()->size() && message.empty(); ++i) {
      const auto record = some.value()->record(i);
      if (!record) message = record.failure().message;
    }
  }
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (const std::size_t at = message.find(folder); at != std::string::npos) message.erase(at, folder.size());
  return message;
}

void write(const std::string& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

}  // namespace

TEST_CASE("a row is what a line of JSONL would be", "[arrow]") {
  struct Case {
    const char* file;
    const char* lines;
  };
  static constexpr Case cases[] = {
      // The lines are Python's own values, written by make.py.
      {"chat.parquet", "chat.jsonl"},
      {"chat.arrow", "chat.jsonl"},
      {"types.parquet", "types.jsonl"},
      {"types.arrow", "types_arrow.jsonl"},
      {"types_stream.arrow", "types_arrow.jsonl"},
  };
  for (const auto& [name, lines] : cases) {
    INFO(name);
    CHECK(rest_of(*opened(files(name))) == lines_of(files(lines)));
  }
  CHECK(rest_of(*opened(files("nanos.parquet"))) ==
        std::vector<std::string>{R"({"at": "1970-01-01T00:00:00.000000001"})",
                                 R"({"at": "1969-12-31T23:59:59.999999999"})",
                                 R"({"at": "1970-01-01T00:00:00.000001"})"});
}

TEST_CASE("columns and groups are known before a row is read", "[arrow]") {
  const auto chat = opened(files("chat.parquet"));
  REQUIRE(chat->columns().size() == 3);
  CHECK(chat->columns()[0].type.starts_with("list<"));
  CHECK_FALSE(chat->columns()[0].is_text);
  CHECK(chat->columns()[1].name == "source");
  CHECK(chat->columns()[1].is_text);  // a dictionary of texts
  CHECK(chat->rows() == 4);
  REQUIRE(chat->groups().size() == 2);
  CHECK(chat->groups()[0].rows == 3);
  CHECK(chat->groups()[0].bytes > 0);
  const auto texts = opened(files("texts_stream.arrow"));
  CHECK(texts->rows() == 40);
  REQUIRE(texts->groups().size() == 3);
  CHECK(texts->groups()[2].rows == 8);
}

TEST_CASE("texts are read from any row on, whatever the file", "[arrow]") {
  for (const char* name :
       {"texts_none.parquet", "texts_snappy.parquet", "texts_gzip.parquet", "texts_brotli.parquet", "texts_lz4.parquet",
        "texts_zstd.parquet", "texts.arrow", "texts_stream.arrow", "texts_dictionary.arrow"}) {
    INFO(name);
    const auto file = opened(files(name));
    REQUIRE(file->choose({"text"}));
    for (const std::int64_t begin : {0, 39, 15, 16, 17, 40, 3}) {
      INFO(begin);
      file->go_to(begin);
      std::int64_t row = begin;
      for (auto some = file->next().value(); some != nullptr; some = file->next().value()) {
        REQUIRE(some->first() == row);
        for (std::int64_t i = 0; i < some->size(); ++i, ++row) {
          const auto text = some->text(i);
          CHECK(text.has_value() == (row % 7 != 5));
          if (text) CHECK(*text == "text " + std::to_string(row));
        }
      }
      CHECK(row == 40);
    }
  }
  const auto file = opened(files("texts.arrow"));
  CHECK(file->choose({"words"}).failure().message == files("texts.arrow") + " has no column \"words\"");
}

TEST_CASE("a file that cannot be read is one error with its place", "[arrow]") {
  CHECK(problem(files("encrypted.parquet")) == "encrypted.parquet is encrypted, and roux has no key");
  CHECK(problem(files("encrypted_columns.parquet")) ==
        "encrypted_columns.parquet has encrypted columns, and roux has no key");
  CHECK(problem(files("texts_v1.feather")) == "texts_v1.feather is a Feather file of version 1");
  CHECK(problem(files("twice.parquet")) == "twice.parquet has two columns \"a\"");
  CHECK(problem(files("not_utf8.parquet")).starts_with("not_utf8.parquet, from row 1 on: damaged: "));
  CHECK(problem(files("many_values.arrow")) == "has more than 1000000 values");
  CHECK(problem(files("make.py")) == "make.py is neither a Parquet file nor an Arrow file or stream");
  CHECK(problem(files("missing.parquet")) == "cannot read missing.parquet: No such file or directory");
  CHECK(problem(tests::source_dir() + "/tests") == "cannot read tests: it is a folder");
  const tests::TempDir folder;
  write(folder / "lfs.parquet", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n");
  CHECK(problem(folder / "lfs.parquet") == "lfs.parquet is a pointer of Git LFS, not the file itself");
  write(folder / "empty.arrow", "");
  CHECK(problem(folder / "empty.arrow") == "empty.arrow is empty");
}

TEST_CASE("what a file unpacks to is limited, whatever it says", "[arrow]") {
  TableLimits limits;
  limits.bytes_max = 3 << 20;
  CHECK(
      problem(files("large.parquet"), limits) ==
      "large.parquet, from row 1 on: rows that lie together take more than 3.1 MB, half of the memory of this machine");
  CHECK(problem(files("large.parquet")).empty());
  // 4,096 rows of 4 KB each, of which the footer says 16 KB: fewer at a time.
  CHECK(problem(files("runs.parquet"), limits).empty());
  CHECK(rest_of(*opened(files("runs.parquet"), limits)).size() == 4096);
  limits.bytes_max = 64;
  CHECK(problem(files("texts.arrow"), limits) ==
        "texts.arrow: a record batch has 272 B, more than 64 B, half of the memory of this machine");
}

TEST_CASE("a file that is cut short or damaged anywhere ends with an error or its rows", "[arrow]") {
  const tests::TempDir folder(tests::TempDir::On::kMemory);
  TableLimits limits;
  limits.bytes_max = 64 << 20;
  for (const char* name : {"chat.parquet", "chat.arrow", "types_stream.arrow", "texts_dictionary.arrow"}) {
    const std::string whole = runner::core::read_file(files(name), kFileBytesMax).value();
    const std::string path = folder / "file";
    for (std::size_t at = 1; at < whole.size(); at += 97) {
      INFO(name << " " << at);
      write(path, whole.substr(0, at));
      const std::string cut = problem(path, limits);
      // A stream may end between two messages.
      if (whole.starts_with("PAR1") || whole.starts_with("ARROW1")) CHECK_FALSE(cut.empty());
      std::string damaged = whole;
      damaged[at] = static_cast<char>(~damaged[at]);
      write(path, damaged);
      problem(path, limits);
      damaged[at] = '\x7f';
      write(path, damaged);
      problem(path, limits);
    }
  }
}

TEST_CASE("a folder is the files that its lists name", "[arrow]") {
  CHECK(runner::core::table_files(files("saved")).value() ==
        std::vector<std::string>{files("saved/data-00000-of-00002.arrow"), files("saved/data-00001-of-00002.arrow")});
  const tests::TempDir folder;
  const auto message = [&folder] {
    std::string text = runner::core::table_files(folder.path()).failure().message;
    while (text.find(folder.path()) != std::string::npos)
      text.replace(text.find(folder.path()), folder.path().size(), "F");
    return text;
  };
  CHECK(message() == "F has no Parquet or Arrow file");
  for (const char* name : {"a-train-00000-of-00002.arrow", "a-train-00001-of-00002.arrow", "cache-1.arrow"}) {
    write(folder / name, "");
  }
  CHECK(runner::core::table_files(folder.path()).value() ==
        std::vector<std::string>{folder / "a-train-00000-of-00002.arrow", folder / "a-train-00001-of-00002.arrow"});
  write(folder / "dataset_info.json", R"({"splits": {"train": {}, "test": {}}})");
  CHECK(message() == "F has several splits: train, test");
  write(folder / "dataset_dict.json", R"({"splits": ["train", "valid"]})");
  CHECK(message() == "F has several splits: train, valid");
  write(folder / "state.json", R"({"_data_files": [{"filename": "../a.arrow"}]})");
  CHECK(message() == "F/state.json: an entry of _data_files has no name of a file in its folder");
  write(folder / "state.json", R"({"_data_files": [{"filename": "b.arrow"}]})");
  CHECK(message() == "F/state.json names F/b.arrow, which does not exist");
}

TEST_CASE("reading starts no thread", "[arrow]") {
  const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
  const auto before = threads();
  for (const char* name : {"types.parquet", "types.arrow", "types_stream.arrow"}) rest_of(*opened(files(name)));
  CHECK(threads() == before);
}
