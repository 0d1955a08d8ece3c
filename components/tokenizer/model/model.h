#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/text/vocabulary.h"

namespace components::tokenizer {

/// Tokens of one word, and how many bytes of it each stands for; 0: for the same ones as the token before it.
struct Tokens {
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> lengths;

  void add(std::int32_t id, std::uint32_t length) {
    ids.push_back(id);
    lengths.push_back(length);
  }
  void clear() { cut(0); }
  /// Leaves the first `count` tokens.
  void cut(std::size_t count) {
    ids.resize(count);
    lengths.resize(count);
  }
};

/// The best way to cut a text up to one place of it; see best_path.h.
struct PathNode {
  double score = 0;
  std::int32_t id = -1;     ///< of the last token
  std::uint32_t begin = 0;  ///< where that one begins
};

/// Memory of one thread that encodes: buffers, and the words that were met before.
struct Scratch {
  static constexpr std::size_t kSlots = 1 << 14;
  /// A short word and its tokens; the last one met of those with the same hash.
  struct Word {
    static constexpr std::size_t kBytesMax = 24, kTokensMax = 8;
    std::uint64_t hash = 0;
    std::uint8_t bytes = 0, tokens = 0;  // no tokens: the slot is free
    std::array<std::uint8_t, kTokensMax> lengths;
    std::array<char, kBytesMax> text;
    std::array<std::int32_t, kTokensMax> ids;
  };
  std::vector<Word> words = std::vector<Word>(kSlots);

  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> lengths;
  /// A token of a long word, in one place because its neighbours are looked at together.
  struct Symbol {
    std::int32_t id;
    std::uint32_t length, rank, previous, next;
  };
  std::vector<Symbol> symbols;
  std::vector<std::uint64_t> heap;
  std::string text;
  std::vector<PathNode> path;
};

/// Appends the tokens of a word: of a short one that was met before those that `make` appended then.
template <typename Make>
void tokenize_once(std::string_view word, Scratch& scratch, Tokens& tokens, const Make& make) {
  using Word = Scratch::Word;
  if (word.size() > Word::kBytesMax) return make();
  const std::uint64_t hash = hash_of(word);
  Word& known = scratch.words[hash % Scratch::kSlots];
  if (known.tokens > 0 && known.hash == hash && known.bytes == word.size() &&
      std::memcmp(known.text.data(), word.data(), word.size()) == 0) {
    for (std::size_t i = 0; i < known.tokens; ++i) tokens.add(known.ids[i], known.lengths[i]);
    return;
  }
  const std::size_t before = tokens.ids.size();
  make();
  const std::size_t count = tokens.ids.size() - before;
  if (count == 0 || count > Word::kTokensMax) return;
  known.hash = hash;
  known.bytes = static_cast<std::uint8_t>(word.size());
  known.tokens = static_cast<std::uint8_t>(count);
  std::memcpy(known.text.data(), word.data(), word.size());
  for (std::size_t i = 0; i < count; ++i) {
    known.ids[i] = tokens.ids[before + i];
    known.lengths[i] = static_cast<std::uint8_t>(tokens.lengths[before + i]);
  }
}

/// Turns a word into tokens. Safe to use from several threads with a Scratch each.
class Model {
 public:
  virtual ~Model() = default;
  /// `BPE`, `WordPiece`, `Unigram`.
  virtual const char* type() const = 0;
  /// Appends the tokens of a word that is not empty.
  virtual void tokenize(std::string_view word, Scratch& scratch, Tokens& tokens) const = 0;
  /// How many bytes of `word` at `at` tokenize() leaves out because there is no token for them.
  virtual std::size_t left_out(std::string_view, std::size_t) const { return 0; }
  virtual const Vocabulary& vocabulary() const = 0;
  /// What it writes for what it does not know; -1 for none.
  virtual std::int32_t unknown() const { return -1; }
};

}  // namespace components::tokenizer
