#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::gguf {

/// How llama.cpp splits a text before the merges of a byte-level BPE, by its name for that (`tokenizer.ggml.pre`).
struct PreTokenizer {
  const char* name;
  bool ignore_merges;              ///< a whole word that is a token is that token
  bool digits;                     ///< each digit alone, before the rest
  const char* pattern;             ///< of `Split`; "": GPT-2's, which ByteLevel has
  std::vector<const char*> alias;  ///< other names for the same
};

/// Null for a name that llama.cpp does not have, or roux does not know.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

/// The one that does what a tokenizer.json asks for. Failure: none does.
core::Result<const PreTokenizer*> pre_tokenizer_of(const core::Node& file);

/// As `pre_tokenizer` of a tokenizer.json.
core::Node written(const PreTokenizer& one);

}  // namespace runner::gguf
