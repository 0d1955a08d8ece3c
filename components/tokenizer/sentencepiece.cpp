#include "components/tokenizer/sentencepiece.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <functional>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "components/tokenizer/added_tokens.h"
#include "components/tokenizer/decoder.h"
#include "components/tokenizer/model/best_path.h"
#include "components/tokenizer/pipeline.h"
#include "components/tokenizer/text/charsmap.h"
#include "components/tokenizer/text/growth.h"
#include "components/tokenizer/text/piece.h"
#include "components/tokenizer/text/pool.h"
#include "components/tokenizer/text/trie.h"
#include "components/tokenizer/text/unicode.h"
#include "components/tokenizer/text/vocabulary.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

using Kind = SentencePieceModel::Kind;
using runner::core::RunError;

constexpr std::int64_t kUnigram = 1, kBpe = 2;       // of trainer_spec.model_type
constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// A text as the model sees it, and where each byte of it, and its end, begins in the original.
struct Normalized {
  std::string text;
  std::vector<std::uint32_t> from;

  void add(std::string_view more, std::size_t at) {
    text += more;
    from.insert(from.end(), more.size(), static_cast<std::uint32_t>(at));
  }
};

class SentencePiece final : public Tokenizer {
 public:
  SentencePiece(SentencePieceModel model, const FolderSettings& settings, Description description)
      : model_(std::move(model)),
        charsmap_(model_.charsmap, description.path + ": normalizer_spec.precompiled_charsmap") {
    const std::string& file = description.path;
    if (model_.model_type != kUnigram && model_.model_type != kBpe) {
      static constexpr std::array<const char*, 5> kTypes = {"?", "unigram", "bpe", "word", "char"};
      const auto type = static_cast<std::size_t>(model_.model_type);
      throw RunError(file + ": trainer_spec.model_type is " + (type < kTypes.size() ? kTypes[type] : "?") +
                         ", a model that roux does not know",
                     "it knows unigram and bpe");
    }
    if (model_.denormalizes) throw RunError(file + ": denormalizer_spec has rules, which roux does not know");
    read_pieces(file);
    settings_ = settings.settings;
    description_ = std::move(description);
    description_.model = model_.model_type == kUnigram ? "Unigram" : "BPE";
    const auto of_model = [&](std::int64_t id, Kind kind) -> std::optional<std::int32_t> {
      if (id < 0 || id >= vocab_size() || model_.pieces[static_cast<std::size_t>(id)].kind != kind) return std::nullopt;
      return static_cast<std::int32_t>(id);
    };
    special_ = find_special_tokens(*this, settings);
    if (!special_.bos) special_.bos = of_model(model_.bos_id, Kind::kControl);
    if (!special_.eos) special_.eos = of_model(model_.eos_id, Kind::kControl);
    if (!special_.pad) special_.pad = of_model(model_.pad_id, Kind::kControl);
    if (!special_.unk) special_.unk = unknown_;
    // Transformers' classes for Llama add the first token unless told; a model alone adds none.
    const bool llama = settings_.tokenizer_class.starts_with("LlamaTokenizer");
    if (settings_.add_bos_token.value_or(llama)) before_ = special_.bos;
    if (settings_.add_eos_token.value_or(false)) behind_ = special_.eos;
  }

  runner::core::Result<Encoding> encode(std::string_view text, const EncodeOptions& options,
                                        const std::optional<Truncation>& truncation) const override {
    if (text.size() > kTextMax / 4) {
      return runner::core::Failure{"the text has " + std::to_string(text.size()) + " bytes, more than " +
                                   std::to_string(kTextMax / 4)};
    }
    if (const auto wrong = runner::core::find_invalid_utf8(text); wrong != std::string_view::npos) {
      return runner::core::Failure{"the text is not UTF-8 at byte " + std::to_string(wrong)};
    }
    return runner::core::attempt([&] {
      Encoding encoding;
      encode_text(text, options, encoding);
      if (truncation) {
        const std::size_t added = options.add_special_tokens ? before_.has_value() + behind_.has_value() : 0;
        tokenizer::cut(encoding, room_for_text(*truncation, added), truncation->side);
      }
      if (options.add_special_tokens) add_special(options, encoding);
      return encoding;
    });
  }

  runner::core::Result<Encoding> encode_pair(std::string_view, std::string_view, const EncodeOptions&,
                                             const std::optional<Truncation>&) const override {
    return runner::core::Failure{description_.path + ": a SentencePiece model does not say how two texts are joined",
                                 "a tokenizer.json beside it does"};
  }

  runner::core::Result<std::string> decode(std::span<const std::int32_t> ids, bool) const override {
    return runner::core::attempt([&] { return decode_ids(ids); });
  }

  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(model_.pieces.size()); }
  std::int32_t id_limit() const override { return static_cast<std::int32_t>(model_.pieces.size()); }
  std::optional<std::string> token_of(std::int32_t id) const override {
    if (id < 0 || id >= id_limit()) return std::nullopt;
    return model_.pieces[static_cast<std::size_t>(id)].text;
  }
  std::optional<std::int32_t> id_of(std::string_view token) const override { return ids_.id_of(token); }
  bool is_special(std::int32_t id) const override {
    if (id < 0 || id >= id_limit()) return false;
    const Kind kind = kind_of(id);
    return kind == Kind::kControl || kind == Kind::kUnknown;
  }
  const std::vector<AddedToken>& added_tokens() const override { return added_; }

 private:
  struct Symbol {
    std::uint32_t begin, size, previous, next;
    std::uint32_t rank;  // of what it makes with the next one; kNoRank for nothing
    bool frozen;         // of a user, so it is merged with nothing
  };
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;
  using Unused = std::unordered_map<std::string_view, std::size_t>;  // a merged text: the size of its left part
  struct Work {
    std::vector<Symbol> symbols;
    std::vector<std::uint64_t> candidates;  // a heap of ranks, each with the place of the left one
    Unused unused;
    std::vector<PathNode> path;
    std::vector<std::pair<std::int32_t, Source>> pieces;  // from the last one to the first
  };

  static std::size_t pair_of(char left, char right) {
    return static_cast<std::size_t>(static_cast<unsigned char>(left)) << 8 | static_cast<unsigned char>(right);
  }

  Kind kind_of(std::int32_t id) const { return model_.pieces[static_cast<std::size_t>(id)].kind; }

  void read_pieces(const std::string& file) {
    bytes_.fill(-1);
    ids_.reserve(model_.pieces.size());
    for (std::size_t i = 0; i < model_.pieces.size(); ++i) {
      const SentencePieceModel::Piece& piece = model_.pieces[i];
      const std::string place = file + ": pieces[" + std::to_string(i) + "]";
      const auto id = static_cast<std::int32_t>(i);
      if (!ids_.add(piece.text, id)) {
        throw RunError(place + " is " + runner::core::quote(piece.text) + ", which another one is, too");
      }
      const bool merged =
          piece.kind == Kind::kNormal || piece.kind == Kind::kUserDefined || piece.kind == Kind::kUnused;
      for (std::size_t j = 1; merged && j < piece.text.size(); ++j) {
        neighbours_.set(pair_of(piece.text[j - 1], piece.text[j]));
      }
      switch (piece.kind) {
        case Kind::kUnknown:
          if (unknown_ >= 0) throw RunError(place + " is a second one for what is unknown");
          unknown_ = id;
          break;
        case Kind::kByte: {
          const int byte = byte_of_name(piece.text);
          if (byte < 0)
            throw RunError(place + " is " + runner::core::quote(piece.text) + ", not a byte such as <0x0A>");
          bytes_[static_cast<std::size_t>(byte)] = id;
          break;
        }
        case Kind::kUserDefined:
          user_defined_.add(piece.text, i);
          added_.push_back({id, piece.text});
          break;
        case Kind::kControl: added_.push_back({id, piece.text, false, false, false, false, true}); break;
        default: break;
      }
    }
    user_defined_.finish();
    if (model_.model_type == kUnigram) read_scores(file);
    // The highest score first; pieces with the same one have the same rank.
    std::vector<std::size_t> order(model_.pieces.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto score = [&](std::size_t i) { return model_.pieces[i].score; };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score(a) > score(b); });
    ranks_.resize(order.size());
    for (std::size_t i = 1; i < order.size(); ++i) {
      ranks_[order[i]] = ranks_[order[i - 1]] + (score(order[i]) < score(order[i - 1]) ? 1 : 0);
    }
    if (unknown_ < 0) throw RunError(file + ": the model has no piece of type UNKNOWN");
    if (model_.byte_fallback && std::count(bytes_.begin(), bytes_.end(), -1) > 0) {
      throw RunError(file + ": trainer_spec.byte_fallback is true, but some of the 256 bytes have no piece");
    }
  }

  void read_scores(const std::string& file) {
    float least = std::numeric_limits<float>::max();
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < model_.pieces.size(); ++i) {
      const SentencePieceModel::Piece& piece = model_.pieces[i];
      if (piece.kind == Kind::kNormal) {
        least = std::min(least, piece.score);
      } else if (piece.kind != Kind::kUserDefined) {
        continue;
      }
      bytes += piece.text.size();
      if (bytes > Trie::kBytesMax) {
        throw RunError(file + ": its pieces have more than " + std::to_string(Trie::kBytesMax) + " bytes together");
      }
      trie_.add(piece.text, static_cast<std::int32_t>(i));
    }
    unknown_score_ = least - static_cast<float>(kUnknownPenalty);
  }

  std::string decode_ids(std::span<const std::int32_t> ids) const {
    std::string text, bytes;
    bool at_start = true, dropped_blank = false;
    const auto end_bytes = [&] {
      // A character at a time; each byte that is none becomes U+FFFD.
      for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = runner::core::utf8_length(bytes, at);
        text += length > 0 ? std::string_view(bytes).substr(at, length) : kReplacement;
        at += std::max<std::size_t>(length, 1);
      }
      bytes.clear();
    };
    const auto is_token = [&](std::int32_t id) { return id >= 0 && id < id_limit(); };
    std::size_t size = 0;
    for (const std::int32_t id : ids) {
      if (is_token(id)) size += model_.pieces[static_cast<std::size_t>(id)].text.size();
    }
    const Growth growth("the decoder", size);
    for (const std::int32_t id : ids) {
      growth.check(text.size());
      if (!is_token(id)) continue;
      const SentencePieceModel::Piece& piece = model_.pieces[static_cast<std::size_t>(id)];
      if (piece.kind == Kind::kByte) {
        bytes += static_cast<char>(byte_of_name(piece.text));
        continue;
      }
      end_bytes();
      if (dropped_blank || !text.empty()) at_start = false;
      dropped_blank = false;
      if (piece.kind == Kind::kControl) continue;
      if (piece.kind == Kind::kUnknown) {
        text += model_.unk_surface;
        continue;
      }
      std::string_view left = piece.text;
      if (at_start && (model_.add_dummy_prefix || model_.remove_extra_whitespaces) && left.starts_with(kBlank)) {
        left.remove_prefix(kBlank.size());
        dropped_blank = !model_.remove_extra_whitespaces;
      }
      for (std::size_t at = 0; at < left.size();) {
        if (left.substr(at).starts_with(kBlank)) {
          text += ' ';
          at += kBlank.size();
        } else {
          text += left[at++];
        }
      }
    }
    end_bytes();
    growth.check(text.size());
    return text;
  }

  /// What stands for the beginning of `text`, and how many bytes of it.
  std::pair<std::string_view, std::size_t> normalized_start(std::string_view text) const {
    TokenFinder::Match match;
    if (user_defined_.find_here(text, 0, match)) return {text.substr(0, match.end), match.end};
    const auto [length, written] = charsmap_.find(text);
    if (length > 0) return {written, length};
    const std::size_t size = utf8_size(text[0]);
    return {text.substr(0, size), size};
  }

  Normalized normalize(std::string_view text) const {
    Normalized result;
    std::size_t at = 0;
    const bool tidy = model_.remove_extra_whitespaces;
    const std::string_view blank = model_.escape_whitespaces ? kBlank : " ";
    while (tidy && at < text.size()) {
      const auto [written, size] = normalized_start(text.substr(at));
      if (written != " ") break;
      at += size;
    }
    if (at == text.size()) return result;
    result.text.reserve(text.size() + text.size() / 4);
    const Growth growth("the normalizer", text.size());
    const bool adds = model_.add_dummy_prefix;
    if (adds && !model_.blank_behind) result.add(blank, at);
    for (bool after_space = tidy; at < text.size();) {
      const auto [written, size] = normalized_start(text.substr(at));
      std::string_view left = written;
      while (after_space && left.starts_with(' ')) left.remove_prefix(1);
      if (!left.empty()) {
        for (std::size_t i = 0; i < left.size();) {
          const std::size_t space = std::min(left.find(' ', i), left.size());
          result.add(left.substr(i, space - i), at);
          if (space < left.size()) result.add(blank, at);
          i = space + 1;
        }
        after_space = tidy && left.ends_with(' ');
        growth.check(result.text.size());
      }
      at += size;
    }
    while (tidy && result.text.ends_with(blank)) {
      const std::size_t size = result.text.size() - blank.size();
      at = result.from[size];
      result.text.resize(size);
      result.from.resize(size);
    }
    if (adds && model_.blank_behind) result.add(blank, at);
    result.from.push_back(static_cast<std::uint32_t>(at));
    return result;
  }

  void add_special(const EncodeOptions& options, Encoding& encoding) const {
    auto& ids = encoding.ids;
    auto& offsets = encoding.offsets;
    const bool begins = !ids.empty() && options.only_missing && ids.front() == before_;
    const bool ends = !ids.empty() && options.only_missing && ids.back() == behind_;
    if (before_ && !begins) {
      ids.insert(ids.begin(), *before_);
      if (options.with_offsets) offsets.insert(offsets.begin(), Offsets{});
    }
    if (behind_ && !ends) {
      ids.push_back(*behind_);
      if (options.with_offsets) offsets.emplace_back();
    }
  }

  void encode_text(std::string_view text, const EncodeOptions& options, Encoding& encoding) const {
    const bool with_offsets = options.with_offsets;
    if (text.empty()) return;
    const Normalized normalized = normalize(text);
    if (normalized.text.empty()) return;
    std::vector<std::uint32_t> characters;  // before each byte of the original
    if (with_offsets) {
      characters.reserve(text.size() + 1);
      std::uint32_t count = 0;
      for (const char byte : text) {
        characters.push_back(count);
        count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
      }
      characters.push_back(count);
      // A byte inside a character counts as its beginning.
      for (std::size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) characters[i] = characters[i - 1];
      }
    }
    const auto add = [&](std::int32_t id, std::uint32_t begin, std::uint32_t end) {
      encoding.ids.push_back(id);
      if (!with_offsets) return;
      Offsets place{characters[begin], characters[end]};
      if (!options.trim_offsets && place.begin == place.end) {  // a blank that was added belongs to its neighbour
        place.begin -= place.begin == characters.back() ? 1 : 0;
        place.end = place.begin + 1;
      }
      encoding.offsets.push_back(place);
    };
    bool after_unknown = false;
    const auto put = [&](std::int32_t id, std::uint32_t begin, std::uint32_t size) {
      const std::uint32_t from = normalized.from[begin], to = normalized.from[begin + size];
      const bool is_unknown = id == unknown_;
      if (is_unknown && model_.byte_fallback) {
        // The last byte has the place of the character, those before it none.
        for (std::uint32_t i = 0; i < size; ++i) {
          const auto byte = static_cast<unsigned char>(normalized.text[begin + i]);
          add(bytes_[byte], from, i + 1 == size || !options.trim_offsets ? to : from);
        }
      } else if (is_unknown && after_unknown) {
        if (with_offsets) encoding.offsets.back().end = characters[to];
      } else {
        add(id, from, to);
      }
      after_unknown = is_unknown;
    };
    if (model_.model_type == kUnigram) {
      cut(normalized.text, put);
    } else {
      merge(normalized.text, put);
    }
  }

  /// Of a unigram model: calls put(id, begin, size) for each piece of the text, from left to right.
  template <typename Put>
  void cut(std::string_view text, const Put& put) const {
    Pool<Work>::Lease lease(work_);
    Work& work = *lease;
    work.pieces.clear();
    const auto score_of = [&](std::int32_t id, std::size_t length) -> double {
      if (kind_of(id) != Kind::kUserDefined) return model_.pieces[static_cast<std::size_t>(id)].score;
      return static_cast<float>(0.1 * static_cast<double>(length - 1));  // above all others, so that it is taken
    };
    cut_best<float>(text, trie_, score_of, unknown_score_, unknown_, work.path,
                    [&](std::int32_t id, std::size_t begin, std::size_t end) {
                      work.pieces.push_back({id, {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)}});
                    });
    for (auto piece = work.pieces.rbegin(); piece != work.pieces.rend(); ++piece) {
      put(piece->first, piece->second.begin, piece->second.end - piece->second.begin);
    }
  }

  /// Calls put(id, begin, size) for each piece of the text, from left to right.
  template <typename Put>
  void merge(std::string_view text, const Put& put) const {
    Pool<Work>::Lease work(work_);
    std::size_t begin = 0;
    for (std::size_t at = 1; at < text.size(); ++at) {
      // No piece goes across two characters that stand beside each other in none.
      if (neighbours_[pair_of(text[at - 1], text[at])] || (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
        continue;
      merge_part(text, begin, at, *work, put);
      begin = at;
    }
    merge_part(text, begin, text.size(), *work, put);
  }

  /// The same of bytes [from, end) alone.
  template <typename Put>
  void merge_part(std::string_view text, std::size_t from, std::size_t end, Work& work, const Put& put) const {
    auto& symbols = work.symbols;
    auto& candidates = work.candidates;
    auto& unused = work.unused;
    symbols.clear();
    candidates.clear();
    unused.clear();
    TokenFinder::Match match;
    for (std::size_t at = from; at < end;) {
      const bool found = user_defined_.find_here(text, at, match);
      const std::size_t size = found ? match.end - at : utf8_size(text[at]);
      const auto index = static_cast<std::uint32_t>(symbols.size());
      symbols.push_back(
          {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(size), index - 1, index + 1, kNoRank, found});
      at += size;
    }
    const auto count = static_cast<std::uint32_t>(symbols.size());
    const auto look = [&](std::uint32_t left, std::uint32_t right) {
      if (left >= count) return false;
      symbols[left].rank = kNoRank;
      if (right >= count || symbols[left].frozen || symbols[right].frozen) return false;
      const std::string_view whole = text.substr(symbols[left].begin, symbols[left].size + symbols[right].size);
      const auto id = ids_.id_of(whole);
      if (!id) return false;
      const Kind kind = kind_of(*id);
      if (kind == Kind::kControl || kind == Kind::kUnknown || kind == Kind::kByte) return false;
      symbols[left].rank = ranks_[static_cast<std::size_t>(*id)];
      candidates.push_back(static_cast<std::uint64_t>(symbols[left].rank) << 32 | left);
      if (kind == Kind::kUnused) unused[whole] = symbols[left].size;
      return true;
    };
    for (std::uint32_t i = 0; i + 1 < count; ++i) look(i, i + 1);
    std::make_heap(candidates.begin(), candidates.end(), std::greater<>());
    const auto push = [&](std::uint32_t left, std::uint32_t right) {
      if (look(left, right)) std::push_heap(candidates.begin(), candidates.end(), std::greater<>());
    };
    while (!candidates.empty()) {
      std::pop_heap(candidates.begin(), candidates.end(), std::greater<>());
      const std::uint64_t top = candidates.back();
      candidates.pop_back();
      const auto at = static_cast<std::uint32_t>(top);
      Symbol& left = symbols[at];
      if (left.rank != top >> 32) continue;  // what it makes with the next one has another rank by now
      Symbol& right = symbols[left.next];
      left.size += right.size;
      left.next = right.next;
      right.rank = kNoRank;
      if (left.next < count) symbols[left.next].previous = at;
      push(left.previous, at);
      push(at, left.next);
    }
    for (std::uint32_t i = 0; i < count; i = symbols[i].next) {
      put_piece(text, symbols[i].begin, symbols[i].size, unused, put);
    }
  }

  /// A piece that is not to be used becomes the two that it was merged of.
  template <typename Put>
  void put_piece(std::string_view text, std::uint32_t begin, std::uint32_t size, const Unused& unused,
                 const Put& put) const {
    const auto whole = text.substr(begin, size);
    const std::int32_t id = ids_.id_of(whole).value_or(unknown_);
    const auto parts = kind_of(id) == Kind::kUnused ? unused.find(whole) : unused.end();
    if (parts == unused.end()) return put(id, begin, size);
    const auto left = static_cast<std::uint32_t>(parts->second);
    put_piece(text, begin, left, unused, put);
    put_piece(text, begin + left, size - left, unused, put);
  }

  SentencePieceModel model_;
  Charsmap charsmap_;
  Vocabulary ids_;
  std::vector<std::uint32_t> ranks_;  // in which order pieces are made, by id
  TokenFinder user_defined_;
  std::vector<AddedToken> added_;
  std::array<std::int32_t, 256> bytes_;
  std::bitset<65536> neighbours_;  // bytes that stand beside each other in a piece
  mutable Pool<Work> work_;
  Trie trie_;  // of a unigram model: the pieces that texts are made of
  float unknown_score_ = 0;
  std::int32_t unknown_ = -1;
  std::optional<std::int32_t> before_, behind_;
};

}  // namespace

std::shared_ptr<Tokenizer> make_sentencepiece(SentencePieceModel model, const FolderSettings& settings,
                                              Description description) {
  return std::make_shared<SentencePiece>(std::move(model), settings, std::move(description));
}

}  // namespace components::tokenizer
