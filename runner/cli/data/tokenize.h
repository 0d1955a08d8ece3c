#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "components/tokenizer/tokenizer.h"
#include "runner/cli/data/documents.h"
#include "runner/cli/data/token_file.h"
#include "runner/core/node.h"

namespace runner::cli {

struct TokenizeRequest {
  std::vector<std::string> inputs;  ///< files; see Documents
  std::string output;
  TokenLayout layout;
  bool append_eos = false;
  std::string column = "text";
  std::size_t threads = 1;
  std::optional<std::int64_t> shard_tokens;  ///< a file ends with the document that reaches this
  bool skip_bad_records = false;             ///< leaves out lines that are no record
  bool force = false;
  std::size_t batch_documents = 4096;              ///< texts that a thread gets at a time
  std::chrono::milliseconds between_saves{2'000};  ///< of the progress
};

struct TokenizeCounts {
  std::int64_t documents = 0, tokens = 0, bytes = 0;
};

struct TokenizeResult {
  TokenizeCounts all, resumed;     ///< `resumed`: of an earlier call
  std::vector<std::string> files;  ///< that were written
  bool was_complete = false;       ///< nothing was left to do
  double seconds = 0;
  Documents::Skipped skipped = {};  ///< in this call
};

/// Writes the ids of texts to token files. They are the same bytes whatever the number of threads. Until all is whole
/// they are OUTPUT.part, or OUTPUT.part-00000 and so on, and OUTPUT.progress says how far they are: the same request
/// resumes there. OUTPUT.json describes the result. With `force` an output that is there stays until then. RunError
/// when there is another output or part, a file of another program, or what the files do not allow. `progress`: called
/// after each batch with the counts, and seconds of this call; may throw to interrupt.
TokenizeResult tokenize(const TokenizeRequest& request, const components::tokenizer::Tokenizer& tokenizer,
                        const std::function<void(const TokenizeCounts&, double)>& progress);

/// The name of a file with `shard_tokens`: `books-00003.u16`.
std::string shard_name(const std::string& output, std::size_t number);

}  // namespace runner::cli
