#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace runner::gguf {

/// What llama.cpp asks of a token (`tokenizer.ggml.token_type`).
enum class TokenKind : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

/// A tokenizer as a file of llama.cpp has it.
struct Vocabulary {
  std::string model;                ///< `gpt2`: BPE over bytes; `llama`: SentencePiece's, by scores
  std::string pre;                  ///< of `gpt2`: how it splits a text (pre_tokenizers.h)
  std::vector<std::string> tokens;  ///< by id, one for each row of the embedding
  std::vector<TokenKind> kinds;     ///< of each
  std::vector<float> scores;        ///< of `llama`: of each
  std::vector<std::string> merges;  ///< of `gpt2`: two tokens with a blank between
  std::optional<std::int32_t> bos, eos, unk, pad;
  bool add_bos = false, add_eos = false;  ///< around a text
  bool add_space_prefix = false;          ///< of `llama`
  std::string chat_template;              ///< "": none
  std::vector<std::string> notes;         ///< what of the tokenizer llama.cpp does not do
};

/// The tokenizer of a folder of Transformers, for an embedding of `rows` rows: unused tokens fill it up.
/// Failure (exit status 2): there is none, it cannot be read, or llama.cpp has none that makes the same ids.
core::Result<Vocabulary> vocabulary_of(const std::string& folder, std::int64_t rows);

}  // namespace runner::gguf
