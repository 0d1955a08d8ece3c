#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/model/model.h"
#include "components/tokenizer/text/trie.h"

namespace components::tokenizer {

/// A unigram language model as the `tokenizers` library does it (Kudo, arXiv:1804.10959): of all ways to cut a word
/// into tokens the one with the largest sum of their scores. Neighbours that are unknown become one token.
class Unigram final : public Model {
 public:
  struct Config {
    Vocabulary vocabulary;
    std::vector<double> scores;  ///< by id, one for each token
    std::optional<std::int64_t> unk_id;
    bool byte_fallback = false;  ///< what is unknown becomes `<0xNN>` for each byte, if there are such tokens
  };

  /// `file` is for messages. Throws RunError that names file and field.
  Unigram(Config config, const std::string& file);

  const char* type() const override { return "Unigram"; }
  /// RunError when the word holds what no token is for, and the model has none for what is unknown.
  void tokenize(std::string_view word, Scratch& scratch, Tokens& tokens) const override;
  const Vocabulary& vocabulary() const override { return config_.vocabulary; }
  std::int32_t unknown() const override { return unknown_; }

 private:
  void cut(std::string_view word, Scratch& scratch, Tokens& tokens) const;
  void add_unknown(std::string_view part, Tokens& tokens) const;

  Config config_;
  std::int32_t unknown_ = -1;
  double unknown_score_ = 0;
  std::array<std::int32_t, 256> byte_ids_;  // of `<0xNN>`; -1 for none
  Trie trie_;
};

}  // namespace components::tokenizer
