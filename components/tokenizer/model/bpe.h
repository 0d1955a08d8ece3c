#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "components/tokenizer/model/model.h"

namespace components::tokenizer {

/// Byte-pair encoding as the `tokenizers` library does it (Sennrich et al., arXiv:1508.07909): a word starts as its
/// characters, and of all neighbours for which there is a merge, the pair of the earliest one becomes one token, the
/// leftmost first.
class Bpe final : public Model {
 public:
  struct Config {
    Vocabulary vocabulary;
    std::vector<std::pair<std::string, std::string>> merges;  ///< the earliest first
    std::optional<std::string> unk_token;
    std::string continuing_subword_prefix, end_of_word_suffix;
    bool fuse_unk = false;       ///< neighbours that are unknown become one token
    bool byte_fallback = false;  ///< a character that is unknown becomes `<0xNN>` for each byte
    bool ignore_merges = false;  ///< a word that is a token is that token
    /// Words are bytes, which the vocabulary writes as characters (byte_chars.h). Not with byte_fallback, a prefix or a
    /// suffix.
    bool bytes = false;
  };

  static constexpr std::size_t kMergesMax = 8'000'000;

  /// `file` is for messages. Throws RunError that names file and field.
  Bpe(Config config, const std::string& file);

  const char* type() const override { return "BPE"; }
  void tokenize(std::string_view word, Scratch& scratch, Tokens& tokens) const override;
  std::size_t left_out(std::string_view word, std::size_t at) const override;
  const Vocabulary& vocabulary() const override { return config_.vocabulary; }
  std::int32_t unknown() const override { return unknown_; }

 private:
  struct Merge {
    std::uint64_t pair = kNoPair;  // the left token's number, then the right one's
    std::uint32_t rank = 0;
    std::int32_t id = 0;
  };
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;

  void read_merges(const std::string& file);
  void read_units();
  void put(std::uint64_t pair, std::uint32_t rank, std::int32_t id);
  /// Null when there is none.
  const Merge* merge_of(std::int32_t left, std::int32_t right) const {
    const std::uint64_t pair =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
    for (std::size_t slot = slot_of(pair);; slot = (slot + 1) & mask_) {
      if (table_[slot].pair == pair) return &table_[slot];
      if (table_[slot].pair == kNoPair) return nullptr;
    }
  }
  std::size_t slot_of(std::uint64_t pair) const { return (pair * 0x9E3779B97F4A7C15u) >> shift_; }

  void tokenize_part(std::string_view word, Scratch& scratch, Tokens& tokens) const;
  void merge(std::string_view word, Scratch& scratch, Tokens& tokens) const;
  void merge_unit(std::string_view word, Scratch& scratch, Tokens& tokens) const;
  /// Whether no token goes across `at`: none has these two bytes beside each other.
  bool parts_at(std::string_view word, std::size_t at) const;
  void start(std::string_view word, Scratch& scratch) const;
  void start_bytes(std::string_view word, Scratch& scratch) const;
  void merge_short(Scratch& scratch, Tokens& tokens) const;
  void merge_long(Scratch& scratch, Tokens& tokens) const;
  std::int32_t id_of_char(char32_t value, std::string_view text) const;

  Config config_;
  std::int32_t unknown_ = -1;
  std::vector<Merge> table_;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
  std::vector<std::int32_t> results_;        // of each merge, by rank
  std::array<std::int32_t, 256> byte_ids_;   // of a byte, or of `<0xNN>`; -1 for none
  std::array<std::int32_t, 128> ascii_ids_;  // of a character; -1 for none
  std::unordered_map<char32_t, std::int32_t> char_ids_;
  std::bitset<65536> neighbours_;  // bytes that stand beside each other in what a merge makes
  bool plain_ = true;              // no prefix, no suffix
  bool splits_at_blanks_ = false;
};

}  // namespace components::tokenizer
