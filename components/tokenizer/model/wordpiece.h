#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "components/tokenizer/model/model.h"
#include "components/tokenizer/text/trie.h"

namespace components::tokenizer {

/// WordPiece as the `tokenizers` library does it (Devlin et al., arXiv:1810.04805): from left to right the longest
/// token that the rest of a word begins with, after its beginning one of those with a prefix. A word with a rest that
/// no token begins is one unknown token.
class WordPiece final : public Model {
 public:
  struct Config {
    Vocabulary vocabulary;
    std::string unk_token = "[UNK]";
    std::string continuing_subword_prefix = "##";
    std::int64_t max_input_chars_per_word = 100;  ///< a longer word is unknown
  };

  /// `file` is for messages. Throws RunError that names file and field.
  WordPiece(Config config, const std::string& file);

  const char* type() const override { return "WordPiece"; }
  void tokenize(std::string_view word, Scratch& scratch, Tokens& tokens) const override;
  const Vocabulary& vocabulary() const override { return config_.vocabulary; }
  std::int32_t unknown() const override { return unknown_; }

 private:
  void cut(std::string_view word, Tokens& tokens) const;

  Config config_;
  std::int32_t unknown_ = -1;
  Trie trie_;
  Trie::Node inside_;  // behind the prefix
};

}  // namespace components::tokenizer
