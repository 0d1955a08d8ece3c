#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "components/tokenizer/text/vocabulary.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/node.h"

namespace components::tokenizer {

/// What a `tokenizer.json` holds. The long parts are taken out of the tree while it is read.
struct TokenizerFile {
  runner::core::Node rest;  ///< without model.vocab, model.merges and added_tokens
  Vocabulary vocabulary;    ///< model.vocab
  bool has_scores = false;  ///< model.vocab is a list of tokens with a score each, of Unigram then
  std::vector<double> scores;
  bool has_merges = false;  ///< model.merges is a list, of BPE then
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<AddedToken> added;
};

/// Reads the text of one; `file` is for messages. Throws RunError that names file and field.
TokenizerFile read_tokenizer_json(std::string_view text, const std::string& file);

/// Another JSON file of a tokenizer, such as tokenizer_config.json. Integers beyond 64 bits, which Transformers writes
/// for "no limit", become floats. Throws RunError.
runner::core::Node read_json_object(std::string_view text, const std::string& file);

/// The tokens of a `vocab.json`. Throws RunError.
Vocabulary read_vocab_json(std::string_view text, const std::string& file);

/// The tokens of a `vocab.txt`, one a line; of two that are the same the later one counts. Throws RunError that names
/// file and line.
Vocabulary read_vocab_txt(std::string_view text, const std::string& file);

/// The pairs of a `merges.txt`. Throws RunError that names file and line.
std::vector<std::pair<std::string, std::string>> read_merges_txt(std::string_view text, const std::string& file);

}  // namespace components::tokenizer
