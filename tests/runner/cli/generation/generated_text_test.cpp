#include "runner/cli/generation/generated_text.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "runner/core/platform/files.h"
#include "tests/support/temp_dir.h"

namespace {

using runner::cli::JsonLines;
using runner::cli::OutputFile;
using runner::cli::TextStream;
using runner::engine::Generated;
using runner::engine::Prompt;

std::string text_of(const std::string& path) { return runner::core::read_file(path, 1 << 20).value(); }

}  // namespace

TEST_CASE("each text is a line, in the order of the prompts", "[cli][generate]") {
  const tests::TempDir dir;
  const std::vector<Prompt> prompts = {{"a \"b\"", {}}, {"", {{"user", "hi"}}}};
  OutputFile file(dir / "out.jsonl");
  JsonLines lines(prompts, file, {.samples = 2, .logprobs = false});
  lines.done({.prompt = 1, .sample = 1, .text = "four", .tokens = {1}, .logprobs = {}, .finish_reason = "stop"});
  lines.done({.prompt = 0, .sample = 1, .text = "two", .tokens = {1, 2}, .logprobs = {}, .finish_reason = "length"});
  lines.done({.prompt = 0, .sample = 0, .text = "on\xC3", .tokens = {}, .logprobs = {}, .finish_reason = "eos"});
  lines.done({.prompt = 1, .sample = 0, .text = "three\n", .tokens = {5}, .logprobs = {}, .finish_reason = "eos"});
  file.finish();
  CHECK(text_of(dir / "out.jsonl") ==
        "{\"prompt\": \"a \\\"b\\\"\", \"sample\": 0, \"text\": \"on\xEF\xBF\xBD\", \"tokens\": 0, "
        "\"finish_reason\": \"eos\"}\n"
        "{\"prompt\": \"a \\\"b\\\"\", \"sample\": 1, \"text\": \"two\", \"tokens\": 2, \"finish_reason\": "
        "\"length\"}\n"
        "{\"prompt\": [{\"role\": \"user\", \"content\": \"hi\"}], \"sample\": 0, \"text\": \"three\\n\", "
        "\"tokens\": 1, \"finish_reason\": \"eos\"}\n"
        "{\"prompt\": [{\"role\": \"user\", \"content\": \"hi\"}], \"sample\": 1, \"text\": \"four\", "
        "\"tokens\": 1, \"finish_reason\": \"stop\"}\n");
}

TEST_CASE("log-probabilities are numbers, or text where JSON has none", "[cli][generate]") {
  const tests::TempDir dir;
  const std::vector<Prompt> prompts = {{"a", {}}};
  OutputFile file(dir / "out.jsonl");
  JsonLines lines(prompts, file, {.samples = 1, .logprobs = true});
  lines.done({.prompt = 0,
              .sample = 0,
              .text = "b",
              .tokens = {1, 2},
              .logprobs = {-0.25F, -std::numeric_limits<float>::infinity()},
              .finish_reason = "eos"});
  file.finish();
  CHECK(text_of(dir / "out.jsonl") ==
        "{\"prompt\": \"a\", \"text\": \"b\", \"tokens\": 2, \"finish_reason\": \"eos\", \"logprobs\": [-0.25, "
        "\"-inf\"]}\n");
}

TEST_CASE("a text is shown piece by piece, and harmless on a terminal", "[cli][generate]") {
  const tests::TempDir dir;
  for (const bool terminal : {false, true}) {
    OutputFile file(dir / "out.txt");
    TextStream stream(file, terminal);
    stream.piece(0, 0, "one\ntw");
    stream.piece(0, 0, "o\x1B[2J");
    stream.done({});
    file.finish();
    CHECK(text_of(dir / "out.txt") == (terminal ? "one\ntwo\\x1b[2J\n" : "one\ntwo\x1B[2J\n"));
  }
}

TEST_CASE("an unfinished file leaves the earlier one as it was", "[cli][generate]") {
  const tests::TempDir dir;
  runner::core::write_file_atomic(dir / "out.txt", "before").value();
  {
    OutputFile file(dir / "out.txt");
    file.put("after");
  }
  CHECK(text_of(dir / "out.txt") == "before");
  CHECK(runner::core::list_folder(dir.path()).value().size() == 1);
}
