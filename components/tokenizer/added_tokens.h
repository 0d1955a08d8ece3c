#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/normalizer.h"
#include "components/tokenizer/text/piece.h"
#include "components/tokenizer/tokenizer.h"

namespace components::tokenizer {

/// Finds tokens in a text: of those that begin at the leftmost place, the longest.
class TokenFinder {
 public:
  /// A token by its text and its place in a list.
  void add(std::string text, std::size_t token) { texts_.push_back({std::move(text), token}); }
  /// Has to be called once, when all were added.
  void finish();

  bool empty() const { return texts_.empty(); }

  struct Match {
    std::size_t begin, end, token;
  };
  /// False when there is none from `at` on.
  bool find(std::string_view text, std::size_t at, Match& match) const;
  /// The same of one that begins at `at`, which is inside the text.
  bool find_here(std::string_view text, std::size_t at, Match& match) const;

 private:
  struct Entry {
    std::string text;
    std::size_t token;
  };
  std::vector<Entry> texts_;          // sorted, without those that are empty
  std::vector<bool> begins_;          // by the first byte
  std::vector<std::uint32_t> first_;  // by the first byte: where its texts begin
  int only_byte_ = -1;                // the first byte of all of them
};

/// The added tokens of a tokenizer.
class AddedTokens {
 public:
  static constexpr std::size_t kTokensMax = 100'000;
  static constexpr std::size_t kBytesMax = 1'000;  // of one

  /// Of two with the same text the first one counts. `normalizer` may be null.
  /// `split_special`: special ones are text. RunError that names `file` when the normalizer makes too much of them.
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer, bool split_special,
              const std::string& file);

  /// Cuts out those that are looked for in the text as it is, then normalizes the rest and cuts out the others.
  void extract(Pieces& pieces, const Normalizer* normalizer) const;

  const std::vector<AddedToken>& all() const { return tokens_; }
  const AddedToken* find(std::int32_t id) const;
  /// What an id is decoded to: the token, of one that is looked for in normalized text as the normalizer writes it.
  const std::string* text_of(std::int32_t id) const;
  const AddedToken* find(std::string_view content) const;

 private:
  void cut(Pieces& pieces, const Normalizer* normalizer, const TokenFinder& finder) const;
  void cut(const Piece& piece, const TokenFinder& finder, std::vector<Piece>& list) const;

  std::vector<AddedToken> tokens_;
  std::vector<std::string> texts_;               // text_of() of each
  std::vector<std::size_t> by_id_, by_content_;  // sorted
  TokenFinder in_text_, in_normalized_;
  bool split_special_;
};

}  // namespace components::tokenizer
