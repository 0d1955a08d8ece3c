#include "runner/cli/data/tokenize.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "tests/support/folder.h"
#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;
using components::tokenizer::Tokenizer;
using runner::cli::shard_name;
using runner::cli::tokenize;
using runner::cli::TokenizeCounts;
using runner::cli::TokenizeRequest;
using runner::cli::TokenizeResult;

std::shared_ptr<const Tokenizer> example_tokenizer() {
  return components::tokenizer::read_tokenizer(tests::source_dir() + "/recipes/examples/data/tokenizer.json").value();
}

std::string text_of(const std::string& path) { return runner::core::read_file(path, 1 << 24).value(); }

/// Two files of 40 texts each and one text, in the current folder.
std::vector<std::string> write_inputs(const tests::Folder& folder) {
  for (const char* name : {"a.jsonl", "b.jsonl"}) {
    std::string lines;
    for (int i = 0; i < 40; ++i) {
      lines += "{\"text\": \"" + std::string(name) + " says number " + std::to_string(i * i) + "\"}\n";
      if (i % 7 == 0) lines += "\n";
    }
    folder.write(name, lines);
  }
  folder.write("c.txt", "a text of its own\nwith two lines\n");
  return {"a.jsonl", "c.txt", "b.jsonl"};
}

TokenizeRequest request_of(const std::vector<std::string>& inputs, const std::string& output) {
  TokenizeRequest request;
  request.inputs = inputs;
  request.output = output;
  request.batch_documents = 5;
  return request;
}

void no_progress(const TokenizeCounts&, double) {}

/// Interrupts behind that batch.
std::function<void(const TokenizeCounts&, double)> interrupt_at(int batch) {
  return [batch, batches = 0](const TokenizeCounts&, double) mutable {
    if (++batches == batch) throw std::domain_error("interrupted");
  };
}

/// Calls tokenize() until it is done, and interrupts it behind each batch.
TokenizeResult in_pieces(const TokenizeRequest& request, const Tokenizer& tokenizer, int& calls) {
  for (calls = 1; calls < 1000; ++calls) {
    int batches = 0;
    try {
      return tokenize(request, tokenizer, [&](const TokenizeCounts&, double) {
        if (++batches == 2) throw std::domain_error("interrupted");
      });
    } catch (const std::domain_error&) {
      CHECK_FALSE(fs::exists(request.output));
    }
  }
  throw std::logic_error("tokenize() makes no progress");
}

}  // namespace

TEST_CASE("token files are the same bytes whatever the number of threads", "[cli][data]") {
  const tests::Folder folder;
  const auto inputs = write_inputs(folder);
  const auto tokenizer = example_tokenizer();
  TokenizeRequest request = request_of(inputs, "one.u16");
  const auto one = tokenize(request, *tokenizer, no_progress);
  CHECK(one.all.documents == 81);
  CHECK(one.files == std::vector<std::string>{"one.u16"});
  CHECK(fs::file_size("one.u16") == static_cast<std::uintmax_t>(2 * one.all.tokens));
  request.output = "three.u16";
  request.threads = 3;
  request.batch_documents = 7;
  tokenize(request, *tokenizer, no_progress);
  CHECK(text_of("three.u16") == text_of("one.u16"));

  // By hand: the ids of the texts, one after the other.
  std::string expected;
  for (const auto& text : {std::string("a.jsonl says number 0"), std::string("a.jsonl says number 1")}) {
    const auto encoding = tokenizer->encode(text, {.add_special_tokens = false}).value();
    for (const std::int32_t id : encoding.ids) {
      expected += static_cast<char>(id & 0xFF);
      expected += static_cast<char>(id >> 8);
    }
  }
  CHECK(text_of("one.u16").starts_with(expected));
}

TEST_CASE("an interrupted tokenization resumes to the same bytes", "[cli][data]") {
  const tests::Folder folder;
  const auto inputs = write_inputs(folder);
  const auto tokenizer = example_tokenizer();
  TokenizeRequest request = request_of(inputs, "whole.npy");
  request.layout = {4, true};
  tokenize(request, *tokenizer, no_progress);

  int calls = 0;
  request.output = "pieces.npy";
  request.between_saves = std::chrono::milliseconds{0};
  const auto result = in_pieces(request, *tokenizer, calls);
  CHECK(calls > 5);
  CHECK(result.resumed.documents > 0);
  CHECK(result.all.documents == 81);
  CHECK(text_of("pieces.npy") == text_of("whole.npy"));
  CHECK(text_of("pieces.npy").size() == 128 + 4 * static_cast<std::size_t>(result.all.tokens));
  CHECK_FALSE(fs::exists("pieces.npy.part"));
  CHECK_FALSE(fs::exists("pieces.npy.progress"));
  CHECK_FALSE(fs::exists("pieces.npy.lock"));
  CHECK(tokenize(request, *tokenizer, no_progress).was_complete);
}

TEST_CASE("shards that were begun after the last save are made again", "[cli][data]") {
  const tests::Folder folder;
  const auto inputs = write_inputs(folder);
  const auto tokenizer = example_tokenizer();
  TokenizeRequest request = request_of(inputs, "whole.u16");
  request.shard_tokens = 100;
  const auto whole = tokenize(request, *tokenizer, no_progress);
  REQUIRE(whole.files.size() > 6);

  request.output = "pieces.u16";
  request.between_saves = std::chrono::hours{1};  // only the beginning is saved
  CHECK_THROWS_AS(tokenize(request, *tokenizer, interrupt_at(8)), std::domain_error);
  REQUIRE(fs::exists("pieces.u16.part-00001"));
  CHECK_FALSE(fs::exists(shard_name("pieces.u16", 0)));
  const auto pieces = tokenize(request, *tokenizer, no_progress);
  REQUIRE(pieces.files.size() == whole.files.size());
  for (std::size_t i = 0; i < whole.files.size(); ++i) {
    CHECK(text_of(shard_name("pieces.u16", i)) == text_of(shard_name("whole.u16", i)));
  }
  CHECK_FALSE(fs::exists("pieces.u16.part-00000"));
  // Each but the last ends with the text that reaches the number.
  for (std::size_t i = 0; i + 1 < whole.files.size(); ++i) CHECK(fs::file_size(whole.files[i]) >= 200);
}

TEST_CASE("--force keeps an output until the new one is whole, and replaces all of it", "[cli][data]") {
  const tests::Folder folder;
  const auto inputs = write_inputs(folder);
  const auto tokenizer = example_tokenizer();
  TokenizeRequest request = request_of(inputs, "out.u16");
  request.between_saves = std::chrono::milliseconds{0};
  const bool in_shards = GENERATE(false, true);
  if (in_shards) request.shard_tokens = 100;
  const auto old = tokenize(request, *tokenizer, no_progress);
  const std::string before = text_of(old.files.back());

  request.force = true;
  request.inputs = {"c.txt"};
  if (in_shards) request.shard_tokens = 1000;
  CHECK_THROWS_AS(tokenize(request, *tokenizer, interrupt_at(1)), std::domain_error);
  CHECK(text_of(old.files.back()) == before);
  request.inputs = {"none.txt"};
  CHECK_THROWS(tokenize(request, *tokenizer, no_progress));
  CHECK(text_of(old.files.back()) == before);
  request.inputs = {"c.txt"};
  CHECK_THROWS_AS(tokenize(request, *tokenizer, interrupt_at(1)), std::domain_error);
  request.force = false;  // continues what --force began
  const auto done = tokenize(request, *tokenizer, no_progress);
  CHECK(done.all.documents == 1);
  REQUIRE(done.files.size() == 1);
  std::vector<std::string> there;
  for (const auto& entry : fs::directory_iterator(".")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("out")) there.push_back(name);
  }
  std::sort(there.begin(), there.end());
  std::vector<std::string> expected = {done.files.front(), "out.u16.json"};
  CHECK(there == expected);
  CHECK(tokenize(request, *tokenizer, no_progress).was_complete);
}

TEST_CASE("files of other programs at the names of an output stay", "[cli][data]") {
  const tests::Folder folder;
  const auto inputs = write_inputs(folder);
  const auto tokenizer = example_tokenizer();
  TokenizeRequest request = request_of(inputs, "out.u16");
  request.between_saves = std::chrono::milliseconds{0};
  const auto refuses = [&](const std::string& why, const std::string& file) {
    CHECK_THROWS_WITH(tokenize(request, *tokenizer, no_progress), why);
    CHECK(text_of(file) == "mine");
  };

  SECTION("a part") {
    folder.write("out.u16.part", "mine");
    request.force = GENERATE(false, true);
    refuses("out.u16.part exists, and there is no out.u16.progress that says what it is", "out.u16.part");
  }
  SECTION("a description") {
    folder.write("out.u16.json", "{\"mine\": 1}");
    request.force = true;
    CHECK_THROWS_WITH(tokenize(request, *tokenizer, no_progress),
                      "out.u16.json exists, and is not of an output that out.u16.json describes");
    CHECK(text_of("out.u16.json") == "{\"mine\": 1}");
  }
  SECTION("a lock") {
    folder.write("out.u16.lock", "mine");
    refuses("out.u16.lock is not a file of roux", "out.u16.lock");
  }
  SECTION("a shard") {
    request.shard_tokens = 100;
    request.force = true;
    folder.write("out-00000.u16", "mine");
    refuses("out-00000.u16 exists, and is not of an output that out.u16.json describes", "out-00000.u16");
  }
  SECTION("an output that came meanwhile") {
    CHECK_THROWS_AS(tokenize(request, *tokenizer, interrupt_at(2)), std::domain_error);
    folder.write("out.u16", "mine");
    refuses("out.u16 exists, and was not there when its tokenization began", "out.u16");
    fs::remove("out.u16");
    CHECK(tokenize(request, *tokenizer, no_progress).resumed.documents > 0);
  }
  SECTION("an output that came in the last moment") {
    int batches = 0;
    const auto write_late = [&](const TokenizeCounts&, double) {
      if (++batches == 2) folder.write("out.u16", "mine");
    };
    CHECK_THROWS_WITH(tokenize(request, *tokenizer, write_late), "cannot rename out.u16.part to out.u16: File exists");
    CHECK(text_of("out.u16") == "mine");
    fs::remove("out.u16");
    CHECK(tokenize(request, *tokenizer, no_progress).all.documents == 81);
  }
  SECTION("a link leads to the file, and a pipe is refused") {
    fs::create_directory("far");
    fs::create_symlink("far/there.u16", "out.u16");
    tokenize(request, *tokenizer, no_progress);
    CHECK(fs::is_symlink("out.u16"));
    CHECK(fs::is_regular_file("far/there.u16"));
    request.output = "pipe.u16";
    REQUIRE(::mkfifo("pipe.u16", 0600) == 0);
    CHECK_THROWS_WITH(tokenize(request, *tokenizer, no_progress),
                      "pipe.u16 is a device, a pipe or an open file, and tokens are written to a file of their own");
    CHECK(fs::is_fifo("pipe.u16"));
  }
}

TEST_CASE("inputs that changed are not mixed with what was tokenized before", "[cli][data]") {
  const tests::Folder folder;
  const auto inputs = write_inputs(folder);
  const auto tokenizer = example_tokenizer();
  TokenizeRequest request = request_of(inputs, "out.u16");
  request.between_saves = std::chrono::milliseconds{0};
  const auto interrupt = [](const TokenizeCounts&, double) { throw std::domain_error("interrupted"); };
  CHECK_THROWS_AS(tokenize(request, *tokenizer, interrupt), std::domain_error);

  SECTION("a line that was read is another") {
    std::string lines = text_of("a.jsonl");
    lines[lines.find("says")] = 'S';
    folder.write("a.jsonl", lines);
    CHECK_THROWS_WITH(tokenize(request, *tokenizer, no_progress),
                      "a.jsonl has changed since a part of it was tokenized");
  }
  SECTION("other settings") {
    request.column = "body";
    CHECK_THROWS_WITH(tokenize(request, *tokenizer, no_progress),
                      "out.u16.part is of a call with another value of column");
  }
  SECTION("more lines behind those that were read are taken") {
    folder.write("a.jsonl", text_of("a.jsonl") + "{\"text\": \"one more\"}\n");
    CHECK(tokenize(request, *tokenizer, no_progress).all.documents == 82);
  }
  SECTION("--force begins again") {
    request.column = "text";
    request.force = true;
    CHECK(tokenize(request, *tokenizer, no_progress).resumed.documents == 0);
  }
}

TEST_CASE("two calls do not write one output at a time", "[cli][data]") {
  const tests::Folder folder;
  const auto inputs = write_inputs(folder);
  const runner::cli::OutputLock other("out.u16");
  CHECK_THROWS_WITH(tokenize(request_of(inputs, "out.u16"), *example_tokenizer(), no_progress),
                    "out.u16 is being written by another roux");
}
