#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <set>

#include "runner/core/error.h"
#include "tests/components/data/building.h"
#include "tests/support/folder.h"

using tests::build_data;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

TEST_CASE("text gives windows and the same windows one byte later", "[data][text]") {
  const tests::Folder folder;
  folder.write("a.txt", "abcd");
  folder.write("b.txt", "efgh");
  for (const std::string streaming : {"false", "true"}) {
    DYNAMIC_SECTION("streaming: " << streaming) {
      const auto data = good_data("{type: text, path: '*.txt', max_seq_len: 3, streaming: " + streaming + "}");
      CHECK(data->size() == 2);
      CHECK(data->tokens_per_sample() == 3);
      CHECK(data->describe() == "2 files, 8 B, 2 samples of 3 bytes");
      CHECK(fetched(*data, {0, 1}, "input") == Values{'a', 'b', 'c', 'd', 'e', 'f'});
      CHECK(fetched(*data, {1, 0}, "target") == Values{'e', 'f', 'g', 'b', 'c', 'd'});
      CHECK(data->signature().at(components::kInput).vocab_size == 256);
      CHECK(data->signature().max_length() == 3);
    }
  }
}

TEST_CASE("the number of windows follows from length and stride", "[data][text]") {
  const tests::Folder folder;
  folder.write("ten.txt", "0123456789");
  struct Case {
    int max_seq_len;
    int stride;
    int samples;
  };
  static constexpr Case cases[] = {{9, 9, 1}, {4, 4, 2},  {4, 1, 6}, {3, 3, 3},
                                   {1, 1, 9}, {1, 20, 1}, {4, 5, 2}, {4, 6, 1}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.max_seq_len << " every " << c.stride) {
      const auto data = good_data("{type: text, path: ten.txt, max_seq_len: " + std::to_string(c.max_seq_len) +
                                  ", stride: " + std::to_string(c.stride) + "}");
      CHECK(data->size() == c.samples);
      const Values last = fetched(*data, {c.samples - 1}, "target");
      CHECK(last.back() == '0' + (c.samples - 1) * c.stride + c.max_seq_len);
    }
  }
}

TEST_CASE("shares of a text are disjoint and leave nothing out", "[data][text]") {
  const tests::Folder folder;
  std::string all;
  for (int i = 0; i < 251; ++i) all += static_cast<char>(i);
  folder.write("one.txt", all.substr(0, 100));
  folder.write("two.txt", all.substr(100));
  for (const std::string cut : {"90%", "33.3%", "12.5%", "99%"}) {
    for (const std::string streaming : {"false", "true"}) {
      DYNAMIC_SECTION(cut << ", streaming: " << streaming) {
        std::multiset<double> seen;
        for (const std::string& split : {":" + cut, cut + ":"}) {
          const auto data = good_data("{type: text, path: '*.txt', max_seq_len: 1, split: '" + split +
                                      "', streaming: " + streaming + "}");
          for (std::int64_t i = 0; i < data->size(); ++i) seen.insert(fetched(*data, {i}, "input")[0]);
          seen.insert(fetched(*data, {data->size() - 1}, "target")[0]);
        }
        CHECK(seen.size() == 251);
        CHECK(std::set<double>(seen.begin(), seen.end()).size() == 251);
      }
    }
  }
}

TEST_CASE("whole files are held out, the same ones every time", "[data][text]") {
  const tests::Folder folder;
  for (int i = 0; i < 20; ++i) {
    folder.write("f" + std::to_string(i / 10) + "/" + std::to_string(i) + ".txt", std::string(2, static_cast<char>(i)));
  }
  const auto files_of = [](const std::string& path, const std::string& split) {
    const auto data =
        good_data("{type: text, path: " + path + ", split_by: files, max_seq_len: 1, split: '" + split + "'}");
    std::set<int> files;
    for (std::int64_t i = 0; i < data->size(); ++i) files.insert(static_cast<int>(fetched(*data, {i}, "input")[0]));
    return files;
  };
  const std::set<int> train = files_of("'**/*.txt'", ":90%");
  const std::set<int> held_out = files_of("'**/*.txt'", "90%:");
  CHECK(train.size() == 18);
  CHECK(held_out.size() == 2);
  for (const int file : held_out) CHECK(train.count(file) == 0);
  CHECK(files_of("['f1/*.txt', 'f0/*.txt']", "90%:") == held_out);
  CHECK(files_of("'./**/*.txt'", "90%:") == held_out);
  CHECK(files_of("'" + std::filesystem::current_path().string() + "/**/*.txt'", "90%:") == held_out);
}

TEST_CASE("which files are held out does not depend on the folder they lie in, nor on the current one",
          "[data][text]") {
  const tests::Folder folder;
  for (const std::string where : {"here/", "far/away v2/"}) {
    for (int i = 0; i < 40; ++i) {
      const std::string name = std::string(i % 2 == 0 ? "even/" : "odd/") + std::to_string(i) + ".txt";
      folder.write(where + name, std::string(2, static_cast<char>(i)));
    }
  }
  const auto bytes_of = [](const std::string& path) {
    const auto data = good_data("{type: text, path: " + path + ", split_by: files, max_seq_len: 1, split: '75%:'}");
    Values bytes;
    for (std::int64_t i = 0; i < data->size(); ++i) bytes.push_back(fetched(*data, {i}, "input")[0]);
    return bytes;
  };
  const std::string root = std::filesystem::current_path().string();
  const std::string far = root + "/far/away v2/";
  const Values held_out = bytes_of("'here/**/*.txt'");
  CHECK(bytes_of("'" + root + "/here/**/*.txt'") == held_out);
  CHECK(bytes_of("'" + far + "**/*.txt'") == held_out);
  CHECK(bytes_of("['" + far + "odd/*.txt', '" + far + "even/*.txt']") == held_out);
  CHECK(bytes_of("['here/even/*.txt', 'far/away v2/odd/*.txt']") == held_out);
  CHECK(bytes_of("['here/**/*.txt', 'here/odd/1.txt']") == held_out);
  CHECK(held_out.size() == 19);
  const Values one_folder = bytes_of("'here/even/*.txt'");
  std::filesystem::current_path(far + "even");
  CHECK(bytes_of("'*.txt'") == one_folder);
  CHECK(bytes_of("'../**/*.txt'") == held_out);
  CHECK(bytes_of("['../odd/*.txt', '*.txt']") == held_out);
  std::filesystem::current_path(root);
}

TEST_CASE("a file counts once, and excluded ones not at all", "[data][text]") {
  const tests::Folder folder;
  folder.write("a.txt", "aaaa");
  folder.write("b.txt", "bbbb");
  folder.write("sub/c.txt", "cccc");
  const auto bytes = [](const std::string& keys) {
    const Values values = fetched(*good_data("{type: text, max_seq_len: 3, stride: 100, " + keys + "}"), {0}, "input");
    return std::string(values.begin(), values.end());
  };
  CHECK(good_data("{type: text, max_seq_len: 1, path: [a.txt, './a.txt', '*.txt']}")->describe() ==
        "2 files, 8 B, 7 samples of 1 byte");
  CHECK(bytes("path: '**/*.txt', exclude: 'a*'") == "bbb");
  CHECK(bytes("path: '**', exclude: ['./a.txt', 'b.txt']") == "ccc");
  CHECK(bytes("path: '**', exclude: '*.none'") == "aaa");
}

TEST_CASE("the entropy of the bytes is in nats", "[data][text]") {
  const tests::Folder folder;
  folder.write("four.txt", "abcdabcdabcdabcd");
  folder.write("one.txt", "aaaaaaaa");
  for (const std::string streaming : {"false", "true"}) {
    const std::string rest = ", max_seq_len: 2, streaming: " + streaming + "}";
    CHECK(good_data("{type: text, path: four.txt" + rest)->unigram_entropy() == Approx(std::log(4.0)).epsilon(1e-12));
    CHECK(good_data("{type: text, path: one.txt" + rest)->unigram_entropy() == 0.0);
  }
}

TEST_CASE("a stream is shuffled in blocks, a text in memory is not", "[data][text]") {
  const tests::Folder folder;
  folder.write("long.txt", std::string(1 << 20, 'x'));
  CHECK(good_data("{type: text, path: long.txt, max_seq_len: 64}")->shuffle_block() == 0);
  // 16,383 samples: 64 blocks of 255 rather than four of 256 KiB.
  CHECK(good_data("{type: text, path: long.txt, max_seq_len: 64, streaming: true}")->shuffle_block() == 255);
}

TEST_CASE("bytes that are no UTF-8 are shown as U+FFFD", "[data][text]") {
  const tests::Folder folder;
  folder.write("a.txt", "abc");
  const auto data = good_data("{type: text, path: a.txt, max_seq_len: 2}");
  struct Case {
    const char* name;
    std::vector<std::int64_t> ids;
    const char* text;
  };
  const Case cases[] = {
      {"plain", {'h', 'i', '\n'}, "hi\n"},
      {"two bytes", {0xC3, 0xA9}, "\u00e9"},
      {"half a character", {'a', 0xC3}, "a\uFFFD"},
      {"overlong", {0xC0, 0xAF}, "\uFFFD\uFFFD"},
      {"surrogate", {0xED, 0xA0, 0x80}, "\uFFFD\uFFFD\uFFFD"},
      {"four bytes", {0xF0, 0x9F, 0x98, 0x80}, "\U0001F600"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(data->decode(c.ids) == c.text); }
  }
  CHECK(data->encode("\u00e9a") == std::vector<std::int64_t>{0xC3, 0xA9, 'a'});
}

TEST_CASE("errors in text files are reported at their location", "[data][text]") {
  const tests::Folder folder;
  folder.write("corpus.txt", "0123456789");
  folder.write("empty.txt", "");
  folder.write("texts/a.md", "abc");
  folder.write("nothing/e1.txt", "");
  folder.write("nothing/e2.txt", "");
  const std::string relative = "a path is relative to the current folder, " + std::filesystem::current_path().string() +
                               "; ${recipe_dir} is the folder of the recipe\n";
  struct Case {
    const char* name;
    std::string recipe;
    std::string messages;
  };
  const Case cases[] = {
      {"a misspelt name", "{type: text, max_seq_len: 4, path: corpsu.txt}",
       "data.yaml:1:36: error: no such file \"corpsu.txt\"\n  hint: did you mean \"corpus.txt\"? " + relative},
      {"a misspelt name in a folder", "{type: text, max_seq_len: 4, path: texts/b.md}",
       "data.yaml:1:36: error: no such file \"texts/b.md\"\n  hint: did you mean \"texts/a.md\"? " + relative},
      {"no such folder", "{type: text, max_seq_len: 4, path: books/corpus.txt}",
       "data.yaml:1:36: error: no such file \"books/corpus.txt\"\n  hint: no such folder \"books\"; " + relative},
      {"a glob without a match", "{type: text, max_seq_len: 4, path: '*.rst'}",
       "data.yaml:1:36: error: no file matches \"*.rst\"\n  hint: `*` does not cross folders, `**` does; " + relative},
      {"a glob in no folder", "{type: text, max_seq_len: 4, path: 'books/*.txt'}",
       "data.yaml:1:36: error: no file matches \"books/*.txt\"\n  hint: no such folder \"books\"; " + relative},
      {"a folder", "{type: text, max_seq_len: 4, path: texts}",
       "data.yaml:1:36: error: \"texts\" is a folder, but samples are read from files\n"
       "  hint: write \"texts/*\" for the files in it, \"texts/**/*\" for all below it\n"},
      {"a device", "{type: text, max_seq_len: 4, path: /dev/zero}",
       "data.yaml:1:36: error: \"/dev/zero\" is not a regular file\n  hint: save its output in a file first\n"},
      {"an empty file", "{type: text, max_seq_len: 4, path: empty.txt}",
       "data.yaml:1:36: error: \"empty.txt\" is empty\n"},
      {"empty files", "{type: text, max_seq_len: 4, path: 'nothing/*'}",
       "data.yaml:1:36: error: the 2 files of data.train have no bytes\n"},
      {"all of several problems", "{type: text, max_seq_len: 4, path: [a.txt, corpus.txt, texts]}",
       "data.yaml:1:37: error: no such file \"a.txt\"\n  hint: " + relative +
           "data.yaml:1:56: error: \"texts\" is a folder, but samples are read from files\n"
           "  hint: write \"texts/*\" for the files in it, \"texts/**/*\" for all below it\n"},
      {"everything excluded", "{type: text, max_seq_len: 4, path: corpus.txt, exclude: '*.txt'}",
       "data.yaml:1:57: error: exclude removes all 1 file of data.train\n"},
      {"too short", "{type: text, path: corpus.txt, max_seq_len: 10}",
       "data.yaml:1:45: error: data.train has 10 bytes, and a sample takes max_seq_len + 1 = 11\n"
       "  hint: use max_seq_len: 9 or less, or use more text\n"},
      {"a share that is too short", "{type: text, path: corpus.txt, max_seq_len: 4, split: '90%:'}",
       "data.yaml:1:45: error: data.train has 1 byte, and a sample takes max_seq_len + 1 = 5\n"
       "  hint: use more text\n"},
      {"an empty share", "{type: text, path: corpus.txt, max_seq_len: 4, split: '20%:10%'}",
       "data.yaml:1:55: error: split \"20%:10%\" is empty: its end is not after its start\n"
       "  hint: write the smaller percentage first, such as \"10%:20%\"\n"},
      {"too few files", "{type: text, path: corpus.txt, max_seq_len: 4, split: ':90%', split_by: files}",
       "data.yaml:1:55: error: split \":90%\" of 1 file has no whole file\n"
       "  hint: use a larger fraction, or split_by: bytes\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      CHECK(build_data(c.recipe).messages == c.messages);
      CHECK(build_data(c.recipe, {.header_only = true}).messages == c.messages);
    }
  }
}

TEST_CASE("a streamed file that becomes shorter is an error with its name", "[data][text]") {
  const tests::Folder folder;
  folder.write("shrinks.txt", "0123456789");
  const auto data = good_data("{type: text, path: shrinks.txt, max_seq_len: 4, streaming: true}");
  std::filesystem::resize_file("shrinks.txt", 6);
  CHECK(fetched(*data, {0}, "input") == Values{'0', '1', '2', '3'});
  CHECK_THROWS_WITH(fetched(*data, {1}, "input"),
                    "\"shrinks.txt\" was truncated: it ends at byte 6, and 3 more are missing");
}
