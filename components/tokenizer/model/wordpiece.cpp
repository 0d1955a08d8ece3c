#include "components/tokenizer/model/wordpiece.h"

#include <utility>

#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {

WordPiece::WordPiece(Config config, const std::string& file) : config_(std::move(config)) {
  const auto unknown = config_.vocabulary.id_of(config_.unk_token);
  if (!unknown) {
    throw runner::core::RunError(file + ": model.unk_token: model.vocab has no token " +
                                 runner::core::quote(config_.unk_token));
  }
  unknown_ = *unknown;
  trie_ = make_trie(config_.vocabulary, file);
  inside_ = trie_.follow(config_.continuing_subword_prefix);
}

void WordPiece::tokenize(std::string_view word, Scratch& scratch, Tokens& tokens) const {
  tokenize_once(word, scratch, tokens, [&] { cut(word, tokens); });
}

void WordPiece::cut(std::string_view word, Tokens& tokens) const {
  const auto unknown = [&] { tokens.add(unknown_, static_cast<std::uint32_t>(word.size())); };
  const auto most = static_cast<std::size_t>(config_.max_input_chars_per_word);
  if (word.size() > most && runner::core::count_code_points(word) > most) return unknown();
  const std::size_t before = tokens.ids.size();
  for (std::size_t at = 0; at < word.size();) {
    std::size_t longest = 0;
    std::int32_t id = -1;
    trie_.find_all(
        word.substr(at),
        [&](std::size_t length, std::int32_t value) {
          longest = length;
          id = value;
        },
        at == 0 ? Trie::kRoot : inside_);
    if (longest == 0) {
      tokens.cut(before);
      return unknown();
    }
    tokens.add(id, static_cast<std::uint32_t>(longest));
    at += longest;
  }
}

}  // namespace components::tokenizer
