#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/text/vocabulary.h"

namespace components::tokenizer {

/// Tokens of one word, and how many bytes of it each stands for.
struct Tokens {
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> lengths;

  void add(std::int32_t id, std::uint32_t length) {
    ids.push_back(id);
    lengths.push_back(length);
  }
  void clear() {
    ids.clear();
    lengths.clear();
  }
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
};

/// Turns a word into tokens. Safe to use from several threads with a Scratch each.
class Model {
 public:
  virtual ~Model() = default;
  /// `BPE`.
  virtual const char* type() const = 0;
  /// Appends the tokens of a word that is not empty.
  virtual void tokenize(std::string_view word, Scratch& scratch, Tokens& tokens) const = 0;
  /// How many bytes of `word` at `at` tokenize() leaves out because there is no token for them.
  virtual std::size_t left_out(std::string_view word, std::size_t at) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  /// What it writes for what it does not know; -1 for none.
  virtual std::int32_t unknown() const { return -1; }
};

}  // namespace components::tokenizer
