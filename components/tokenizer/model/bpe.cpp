#include "components/tokenizer/model/bpe.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "components/tokenizer/text/byte_chars.h"
#include "components/tokenizer/text/unicode.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

using runner::core::RunError;

constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581, a space in vocabularies of SentencePiece
constexpr std::size_t kShort = 32;                   // up to here looking at all pairs is faster than a heap

std::size_t pair_of(char left, char right) {
  return static_cast<std::size_t>(static_cast<unsigned char>(left)) << 8 | static_cast<unsigned char>(right);
}

std::string merge_field(std::size_t i) { return "model.merges[" + std::to_string(i) + "]"; }

/// Whether a blank follows something else: `a▁`.
bool has_inner_blank(std::string_view token) {
  for (auto at = token.find(kBlank); at != std::string_view::npos; at = token.find(kBlank, at + kBlank.size())) {
    if (at == 0) continue;
    if (at < kBlank.size() || token.substr(at - kBlank.size(), kBlank.size()) != kBlank) return true;
  }
  return false;
}

}  // namespace

Bpe::Bpe(Config config, const std::string& file) : config_(std::move(config)) {
  plain_ = config_.continuing_subword_prefix.empty() && config_.end_of_word_suffix.empty();
  if (config_.unk_token) {
    const auto id = config_.vocabulary.id_of(*config_.unk_token);
    if (!id) {
      throw RunError(file + ": model.unk_token: model.vocab has no token " + runner::core::quote(*config_.unk_token));
    }
    unknown_ = *id;
  }
  read_merges(file);
  read_units();
}

void Bpe::read_merges(const std::string& file) {
  std::size_t slots = 64;
  unsigned bits = 6;
  for (; slots < config_.merges.size() * 2; slots *= 2) ++bits;
  table_.resize(slots);
  mask_ = slots - 1;
  shift_ = 64 - bits;
  results_.resize(config_.merges.size());
  const std::string& prefix = config_.continuing_subword_prefix;
  bool inner_blanks = false;
  std::string whole;
  for (std::size_t i = 0; i < config_.merges.size(); ++i) {
    const std::string &left = config_.merges[i].first, &right = config_.merges[i].second;
    const auto need = [&](const std::string& token) {
      const auto id = config_.vocabulary.id_of(token);
      if (id) return *id;
      throw RunError(file + ": " + merge_field(i) + ": " + runner::core::quote(left) + " and " +
                     runner::core::quote(right) + " need the token " + runner::core::quote(token) +
                     ", which model.vocab lacks");
    };
    if (left.empty() || right.empty()) throw RunError(file + ": " + merge_field(i) + ": one of the two is empty");
    if (right.size() <= prefix.size()) {
      throw RunError(file + ": " + merge_field(i) + ": " + runner::core::quote(right) +
                     " is not longer than model.continuing_subword_prefix");
    }
    whole.assign(left).append(right, prefix.size());
    const std::int32_t a = need(left), b = need(right), id = need(whole);
    inner_blanks = inner_blanks || has_inner_blank(whole);
    const std::string bytes = config_.bytes ? bytes_of_token(whole).value_or("") : whole;
    for (std::size_t j = 1; j < bytes.size(); ++j) neighbours_.set(pair_of(bytes[j - 1], bytes[j]));
    results_[i] = id;
    put(static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(i), id);
  }
  config_.merges = {};
  // No token goes across the beginning of a run of blanks: what lies between two of them is merged on its own.
  splits_at_blanks_ = !config_.bytes && plain_ && !config_.ignore_merges && !inner_blanks &&
                      config_.vocabulary.id_of(kBlank).has_value();
}

void Bpe::put(std::uint64_t pair, std::uint32_t rank, std::int32_t id) {
  std::size_t slot = slot_of(pair);
  while (table_[slot].pair != kNoPair && table_[slot].pair != pair) slot = (slot + 1) & mask_;
  table_[slot] = {pair, rank, id};  // of two that are the same, the later one counts
}

void Bpe::read_units() {
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string token;
    if (config_.bytes) {
      append_utf8(token, char_of_byte(static_cast<std::uint8_t>(byte)));
    } else {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", byte);
      token = name;
    }
    byte_ids_[byte] = config_.vocabulary.id_of(token).value_or(-1);
  }
  for (unsigned c = 0; c < 128; ++c) {
    ascii_ids_[c] = config_.vocabulary.id_of(std::string(1, static_cast<char>(c))).value_or(-1);
  }
  if (config_.bytes) return;
  for (std::int32_t id = 0; id < config_.vocabulary.id_limit(); ++id) {
    const auto token = config_.vocabulary.token_of(id);
    if (!token || token->empty() || token->size() != utf8_size((*token)[0])) continue;
    char_ids_.emplace(code_point_at(*token, 0).value, id);
  }
}

std::int32_t Bpe::id_of_char(char32_t value, std::string_view text) const {
  if (!plain_) return config_.vocabulary.id_of(text).value_or(-1);
  if (value < 128) return ascii_ids_[value];
  const auto found = char_ids_.find(value);
  return found == char_ids_.end() ? -1 : found->second;
}

void Bpe::tokenize(std::string_view word, Scratch& scratch, Tokens& tokens) const {
  if (!splits_at_blanks_) return tokenize_part(word, scratch, tokens);
  std::size_t begin = 0;
  for (auto at = word.find(kBlank, 1); at != std::string_view::npos; at = word.find(kBlank, at + kBlank.size())) {
    if (at >= kBlank.size() && word.substr(at - kBlank.size(), kBlank.size()) == kBlank) continue;
    tokenize_part(word.substr(begin, at - begin), scratch, tokens);
    begin = at;
  }
  tokenize_part(word.substr(begin), scratch, tokens);
}

void Bpe::tokenize_part(std::string_view word, Scratch& scratch, Tokens& tokens) const {
  tokenize_once(word, scratch, tokens, [&] { merge(word, scratch, tokens); });
}

void Bpe::merge(std::string_view word, Scratch& scratch, Tokens& tokens) const {
  if (config_.ignore_merges && word.size() <= config_.vocabulary.longest()) {
    std::string_view text = word;
    if (config_.bytes) {
      scratch.text.clear();
      append_byte_chars(scratch.text, word);
      text = scratch.text;
    }
    if (const auto id = config_.vocabulary.id_of(text)) {
      return tokens.add(*id, static_cast<std::uint32_t>(word.size()));
    }
  }
  std::size_t begin = 0;
  if (word.size() > kShort && plain_) {
    for (std::size_t at = 1; at < word.size(); ++at) {
      if (!parts_at(word, at)) continue;
      merge_unit(word.substr(begin, at - begin), scratch, tokens);
      begin = at;
    }
  }
  merge_unit(word.substr(begin), scratch, tokens);
}

bool Bpe::parts_at(std::string_view word, std::size_t at) const {
  if (neighbours_[pair_of(word[at - 1], word[at])]) return false;
  // What is unknown may be left out, or become a token whose text is another: it stays with its neighbours.
  if (config_.bytes) {
    return byte_ids_[static_cast<unsigned char>(word[at - 1])] >= 0 &&
           byte_ids_[static_cast<unsigned char>(word[at])] >= 0;
  }
  if ((static_cast<unsigned char>(word[at]) & 0xC0) == 0x80) return false;
  std::size_t before = at - 1;
  while ((static_cast<unsigned char>(word[before]) & 0xC0) == 0x80) --before;
  return id_of_char(code_point_at(word, before).value, "") >= 0 && id_of_char(code_point_at(word, at).value, "") >= 0;
}

void Bpe::merge_unit(std::string_view word, Scratch& scratch, Tokens& tokens) const {
  scratch.ids.clear();
  scratch.lengths.clear();
  if (config_.bytes) {
    start_bytes(word, scratch);
  } else {
    start(word, scratch);
  }
  if (scratch.ids.size() <= kShort) {
    merge_short(scratch, tokens);
  } else {
    merge_long(scratch, tokens);
  }
}

void Bpe::start_bytes(std::string_view word, Scratch& scratch) const {
  std::uint32_t unknown = 0;  // bytes of an unknown token that is not written yet
  const auto add = [&](std::int32_t id, std::uint32_t length) {
    scratch.ids.push_back(id);
    scratch.lengths.push_back(length);
  };
  for (const char c : word) {
    const std::int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id < 0) {
      if (unknown_ < 0) continue;  // without a token for it the library leaves it out
      if (unknown > 0 && !config_.fuse_unk) add(unknown_, std::exchange(unknown, 0));
      ++unknown;
      continue;
    }
    if (unknown > 0) add(unknown_, std::exchange(unknown, 0));
    add(id, 1);
  }
  if (unknown > 0) add(unknown_, unknown);
}

void Bpe::start(std::string_view word, Scratch& scratch) const {
  std::uint32_t unknown = 0;  // bytes of an unknown token that is not written yet
  const auto add = [&](std::int32_t id, std::uint32_t length) {
    scratch.ids.push_back(id);
    scratch.lengths.push_back(length);
  };
  std::string decorated;
  for (std::size_t at = 0; at < word.size();) {
    const CodePoint point = code_point_at(word, at);
    std::string_view text = word.substr(at, point.length);
    if (!plain_) {
      decorated = at > 0 ? config_.continuing_subword_prefix : "";
      decorated += text;
      if (at + point.length == word.size()) decorated += config_.end_of_word_suffix;
      text = decorated;
    }
    at += point.length;
    const std::int32_t id = id_of_char(point.value, text);
    if (id >= 0) {
      if (unknown > 0) add(unknown_, std::exchange(unknown, 0));
      add(id, point.length);
      continue;
    }
    if (config_.byte_fallback && std::all_of(text.begin(), text.end(), [&](char byte) {
          return byte_ids_[static_cast<unsigned char>(byte)] >= 0;
        })) {
      // What is unknown before stays behind these, as in the library.
      for (const char byte : text) add(byte_ids_[static_cast<unsigned char>(byte)], 1);
      continue;
    }
    if (unknown_ < 0) continue;  // without a token for it the library leaves it out
    if (unknown > 0 && !config_.fuse_unk) add(unknown_, std::exchange(unknown, 0));
    unknown += point.length;
  }
  if (unknown > 0) add(unknown_, unknown);
}

std::size_t Bpe::left_out(std::string_view word, std::size_t at) const {
  const auto byte = static_cast<unsigned char>(word[at]);
  if (unknown_ >= 0) return 0;
  if (config_.bytes) return byte_ids_[byte] < 0 ? 1 : 0;
  if ((byte & 0xC0) == 0x80) return 0;  // inside a character, which was not left out
  const CodePoint point = code_point_at(word, at);
  std::string text = at > 0 ? config_.continuing_subword_prefix : "";
  text += word.substr(at, point.length);
  if (at + point.length == word.size()) text += config_.end_of_word_suffix;
  if (id_of_char(point.value, text) >= 0) return 0;
  const bool has_bytes =
      std::all_of(text.begin(), text.end(), [&](char one) { return byte_ids_[static_cast<unsigned char>(one)] >= 0; });
  return config_.byte_fallback && has_bytes ? 0 : point.length;
}

void Bpe::merge_short(Scratch& scratch, Tokens& tokens) const {
  std::array<std::uint32_t, kShort> ranks, lengths;
  std::array<std::int32_t, kShort> ids, results;
  std::size_t count = scratch.ids.size();
  std::copy_n(scratch.ids.begin(), count, ids.begin());
  std::copy_n(scratch.lengths.begin(), count, lengths.begin());
  const auto look = [&](std::size_t i) {
    const Merge* merge = merge_of(ids[i], ids[i + 1]);
    ranks[i] = merge == nullptr ? kNoRank : merge->rank;
    if (merge != nullptr) results[i] = merge->id;
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look(i);
  while (count > 1) {
    const auto first = std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count) - 1);
    if (*first == kNoRank) break;
    const auto at = static_cast<std::size_t>(first - ranks.begin());
    ids[at] = results[at];
    lengths[at] += lengths[at + 1];
    for (std::size_t i = at + 1; i + 1 < count; ++i) {
      ids[i] = ids[i + 1];
      lengths[i] = lengths[i + 1];
      ranks[i] = ranks[i + 1];
      results[i] = results[i + 1];
    }
    --count;
    if (at + 1 < count) look(at);
    if (at > 0) look(at - 1);
  }
  for (std::size_t i = 0; i < count; ++i) tokens.add(ids[i], lengths[i]);
}

void Bpe::merge_long(Scratch& scratch, Tokens& tokens) const {
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  std::vector<std::uint64_t>& heap = scratch.heap;
  const auto count = static_cast<std::uint32_t>(scratch.ids.size());
  symbols.resize(count);
  heap.clear();
  const auto look = [&](std::uint32_t left, std::uint32_t right) {
    const Merge* merge = merge_of(symbols[left].id, symbols[right].id);
    symbols[left].rank = merge == nullptr ? kNoRank : merge->rank;
    return merge != nullptr;
  };
  // The earliest merge first, then the leftmost.
  const auto entry = [&](std::uint32_t at) { return static_cast<std::uint64_t>(symbols[at].rank) << 32 | at; };
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols[i] = {scratch.ids[i], scratch.lengths[i], kNoRank, i - 1, i + 1};  // before the first: beyond the end
  }
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    if (look(i, i + 1)) heap.push_back(entry(i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto push = [&](std::uint32_t at) {
    heap.push_back(entry(at));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const std::uint64_t top = heap.back();
    heap.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    Scratch::Symbol& symbol = symbols[at];
    if (symbol.rank != top >> 32) continue;  // the pair is another one by now, or part of a token
    Scratch::Symbol& gone = symbols[symbol.next];
    symbol.id = results_[symbol.rank];
    symbol.length += gone.length;
    symbol.next = gone.next;
    symbol.rank = kNoRank;
    gone.rank = kNoRank;
    if (symbol.next < count) {
      symbols[symbol.next].previous = at;
      if (look(at, symbol.next)) push(at);
    }
    if (symbol.previous < count && look(symbol.previous, at)) push(symbol.previous);
  }
  for (std::uint32_t i = 0; i < count; i = symbols[i].next) tokens.add(symbols[i].id, symbols[i].length);
}

}  // namespace components::tokenizer
