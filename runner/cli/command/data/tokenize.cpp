#include "runner/cli/data/tokenize.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "runner/cli/commands.h"
#include "runner/cli/data/progress_line.h"
#include "runner/cli/flags.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"

namespace runner::cli {
namespace {

using components::tokenizer::Tokenizer;

struct TokenizeFlags {
  TokenizeRequest request;
  std::vector<std::string> inputs;
  std::string tokenizer;
  int threads = 0;  ///< 0: not given
};

constexpr int kThreadsMax = 1024;

/// False when the session has failed.
bool find_inputs(TokenizeFlags& flags, Session& session) {
  for (const std::string& pattern : flags.inputs) {
    const auto found = core::glob(pattern);
    if (found.empty()) {
      session.fail("no file matches " + pattern);
      return false;
    }
    for (const std::string& path : found) {
      std::error_code ignored;
      if (std::filesystem::is_directory(path, ignored)) {
        session.fail(path + " is a folder", "name its files: \"" + path + "/*.jsonl\"");
        return false;
      }
      if (!is_document_file(path)) {
        session.fail(path + " is no .txt, .jsonl (also .gz, .zst), .parquet or .arrow",
                     "rename it, or write it as lines of JSON");
        return false;
      }
      if (!state_of(path)) {
        session.fail("cannot read " + path + ": no such file");
        return false;
      }
      flags.request.inputs.push_back(path);
    }
  }
  return true;
}

/// False when the session has failed: the name does not say how to write, or the ids do not fit.
bool choose_layout(TokenizeRequest& request, const Tokenizer& tokenizer, Session& session) {
  const std::string& output = request.output;
  const bool narrow = tokenizer.id_limit() <= 65536;
  request.layout.token_bytes = narrow ? 2 : 4;
  if (output.ends_with(".npy")) {
    request.layout.numpy = true;
  } else if (output.ends_with(".u32")) {
    request.layout.token_bytes = 4;
  } else if (output.ends_with(".u16")) {
    if (!narrow) {
      session.fail("the tokenizer has ids up to " + std::to_string(tokenizer.id_limit() - 1) +
                       ", and a .u16 file holds ids up to 65535",
                   "name the output .u32");
      return false;
    }
  } else if (!output.ends_with(".bin")) {
    session.fail("the name of the output says how ids are written, and " + output + " has no known ending",
                 "end it with .u16, .u32, .npy, or .bin for the narrowest type");
    return false;
  }
  return true;
}

std::string rate_text(double tokens, double seconds) {
  return core::format_count(tokens / std::max(seconds, 1e-9)) + " tokens/s";
}

std::string counts_text(const TokenizeCounts& counts) {
  return core::counted_large(counts.tokens, "token", "tokens") + " of " +
         core::counted_large(counts.documents, "document", "documents") + " (" + core::format_bytes(counts.bytes) + ")";
}

/// How a recipe reads the files.
std::string recipe_text(const TokenizeRequest& request, const Tokenizer& tokenizer) {
  std::string path = request.output;
  if (request.shard_tokens) {
    path = shard_name(request.output, 0);
    path.replace(path.rfind("00000"), 5, "*");
  }
  std::string text =
      "  train: {type: tokens, path: \"" + path + "\", vocab_size: " + std::to_string(tokenizer.id_limit());
  if (request.layout.token_bytes == 4) text += ", dtype: uint32";
  if (request.layout.numpy) text += ", header_bytes: " + std::to_string(TokenLayout::kNumpyHeader);
  return text + ", max_seq_len: 1024}\n";
}

void run(TokenizeFlags& flags, Session& session) {
  const auto path = session.fetched_path(flags.tokenizer, hub::Part::kTokenizer);
  if (!path) return;
  auto read = components::tokenizer::read_tokenizer(*path);
  if (!read) return session.fail(read.failure().message, read.failure().hint);
  const auto tokenizer = std::move(read).value();
  if (!find_inputs(flags, session) || !choose_layout(flags.request, *tokenizer, session)) return;
  if (flags.request.append_eos && !tokenizer->special().eos) {
    return session.fail("--append-eos, but the tokenizer names no end token",
                        "name eos_token in a tokenizer_config.json beside it, or remove --append-eos");
  }
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  flags.request.threads = static_cast<std::size_t>(flags.threads > 0 ? flags.threads : cores);
  ProgressLine line(!session.quiet);
  const auto result = tokenize(flags.request, *tokenizer, [&line](const TokenizeCounts& counts, double seconds) {
    line.draw([&] { return counts_text(counts) + ", " + rate_text(static_cast<double>(counts.tokens), seconds); });
  });
  line.clear();
  if (result.was_complete) {
    std::printf("%s is complete: %s; --force writes it again\n",
                core::escape_for_terminal(flags.request.output).c_str(), counts_text(result.all).c_str());
    return;
  }
  if (result.resumed.documents > 0) std::printf("resumed behind %s\n", counts_text(result.resumed).c_str());
  if (result.skipped.lines > 0) {
    std::printf("skipped %s, such as %s\n",
                core::counted_large(result.skipped.lines, "line that is no record", "lines that are no record").c_str(),
                core::escape_for_terminal(result.skipped.first).c_str());
  }
  const double made = static_cast<double>(result.all.tokens - result.resumed.tokens);
  const std::string what = result.files.size() == 1 ? result.files.front()
                                                    : std::to_string(result.files.size()) + " files, " +
                                                          result.files.front() + " to " + result.files.back();
  std::printf("wrote %s: %s as %s, %s\n%s", core::escape_for_terminal(what).c_str(), counts_text(result.all).c_str(),
              flags.request.layout.dtype(), rate_text(made, result.seconds).c_str(),
              recipe_text(flags.request, *tokenizer).c_str());
}

}  // namespace

void add_data_tokenize(Command group, Session& session) {
  const auto flags = std::make_shared<TokenizeFlags>();
  TokenizeRequest& request = flags->request;
  Command command = group.add_subcommand("tokenize", "Write token files for data sets of type tokens");
  command
      .add_option("INPUT", flags->inputs,
                  "Files or globs: .txt, one text each; .jsonl (also .gz, .zst), .parquet, .arrow")
      .required();
  command.add_option("--tokenizer", flags->tokenizer, "Folder or file of the tokenizer").type_name("PATH").required();
  command
      .add_option("--output,-o", request.output,
                  "File to write: .u16, .u32, or .npy and .bin with the narrowest type that holds the vocabulary")
      .type_name("FILE")
      .required();
  command.add_flag("--append-eos", request.append_eos, "Write the end token behind each text");
  command.add_option("--column", request.column, "Field of a line or row that holds the text; text by default")
      .type_name("FIELD");
  add_choice<bool>(command, "--on-bad-record", "What to do with a line or row that has no text",
                   request.skip_bad_records, {{"error", false}, {"skip", true}});
  command.add_option("--threads", flags->threads, "Number of threads; one for each core by default")
      .type_name("N")
      .in_range(1, kThreadsMax);
  command
      .add_option("--shard-tokens", request.shard_tokens,
                  "Begin another file behind the text that reaches this number of tokens")
      .type_name("N")
      .in_range<std::int64_t>(1, INT64_MAX);
  command.add_flag("--force", request.force, "Replace what is there, and begin from scratch");
  command.footer(
      "\nExamples:\n"
      "  roux data tokenize books/*.txt --tokenizer models/smollm2 --output books.u16 --append-eos\n"
      "  roux data tokenize \"web/*.jsonl.gz\" --tokenizer models/smollm2 --output web.npy --shard-tokens 100000000\n\n"
      "Texts get no other special tokens. Until a file is whole it is FILE.part; the same command resumes what was\n"
      "interrupted. FILE.json tells tokenizer, end token and counts.");
  command.callback([flags, &session] { session.command = [flags, &session] { run(*flags, session); }; });
}

}  // namespace runner::cli
