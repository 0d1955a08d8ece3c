#include "components/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "components/tokenizer/text/unicode.h"

namespace components::tokenizer {
namespace {

std::size_t before(std::string_view text, std::size_t at) {  // where the character before `at` begins
  do --at;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool is(std::string_view text, std::size_t at, CharClass wanted) {
  return char_table().is(code_point_at(text, at).value, wanted);
}

}  // namespace

void TokenFinder::finish() {
  std::erase_if(texts_, [](const Entry& entry) { return entry.text.empty(); });
  std::stable_sort(texts_.begin(), texts_.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  const auto same = [](const Entry& a, const Entry& b) { return a.text == b.text; };
  texts_.erase(std::unique(texts_.begin(), texts_.end(), same), texts_.end());
  begins_.assign(256, false);
  first_.assign(257, 0);
  for (const Entry& entry : texts_) {
    const auto byte = static_cast<unsigned char>(entry.text[0]);
    begins_[byte] = true;
    ++first_[byte + 1u];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  if (std::count(begins_.begin(), begins_.end(), true) == 1) only_byte_ = static_cast<unsigned char>(texts_[0].text[0]);
}

bool TokenFinder::find(std::string_view text, std::size_t at, Match& match) const {
  for (; at < text.size(); ++at) {
    if (only_byte_ >= 0) {
      const void* next = std::memchr(text.data() + at, only_byte_, text.size() - at);
      if (next == nullptr) return false;
      at = static_cast<std::size_t>(static_cast<const char*>(next) - text.data());
    }
    if (find_here(text, at, match)) return true;
  }
  return false;
}

bool TokenFinder::find_here(std::string_view text, std::size_t at, Match& match) const {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (!begins_[byte]) return false;
  // The texts that begin as the text does are neighbours; with each byte there are fewer of them.
  auto low = texts_.begin() + first_[byte], high = texts_.begin() + first_[byte + 1u];
  const Entry* longest = nullptr;
  for (std::size_t size = 1;; ++size) {
    if (low->text.size() == size) longest = &*low++;
    if (low == high || at + size >= text.size()) break;
    const auto next = static_cast<unsigned char>(text[at + size]);
    const auto byte_of = [&](const Entry& entry) { return static_cast<unsigned char>(entry.text[size]); };
    low = std::partition_point(low, high, [&](const Entry& entry) { return byte_of(entry) < next; });
    high = std::partition_point(low, high, [&](const Entry& entry) { return byte_of(entry) == next; });
    if (low == high) break;
  }
  if (longest == nullptr) return false;
  match = {at, at + longest->text.size(), longest->token};
  return true;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer, bool split_special,
                         const std::string& file)
    : tokens_(std::move(tokens)), split_special_(split_special) {
  by_id_.resize(tokens_.size());
  std::iota(by_id_.begin(), by_id_.end(), std::size_t{0});
  by_content_ = by_id_;
  std::stable_sort(by_id_.begin(), by_id_.end(),
                   [&](std::size_t a, std::size_t b) { return tokens_[a].id < tokens_[b].id; });
  std::stable_sort(by_content_.begin(), by_content_.end(),
                   [&](std::size_t a, std::size_t b) { return tokens_[a].content < tokens_[b].content; });
  std::size_t bytes = 0;
  for (const AddedToken& token : tokens_) {
    texts_.push_back(token.content);
    bytes += token.content.size();
  }
  Growth growth(file + ": added_tokens: the normalizer", bytes);  // of all together, as all are kept
  for (const bool special : {true, false}) {                      // of two with the same text a special one counts
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const AddedToken& token = tokens_[i];
      if (token.special != special) continue;
      if (!token.normalized || normalizer == nullptr) {
        (token.normalized ? in_normalized_ : in_text_).add(token.content, i);
        continue;
      }
      Pieces pieces(token.content, false, growth);
      for (Piece& piece : pieces.list) {
        normalizer->apply(pieces, piece);
        texts_[i] = std::string(piece.text);
        in_normalized_.add(texts_[i], i);
      }
    }
  }
  in_text_.finish();
  in_normalized_.finish();
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto at = std::lower_bound(by_id_.begin(), by_id_.end(), id,
                                   [&](std::size_t i, std::int32_t wanted) { return tokens_[i].id < wanted; });
  return at == by_id_.end() || tokens_[*at].id != id ? nullptr : &tokens_[*at];
}

const std::string* AddedTokens::text_of(std::int32_t id) const {
  const AddedToken* token = find(id);
  return token == nullptr ? nullptr : &texts_[static_cast<std::size_t>(token - tokens_.data())];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto at = std::lower_bound(by_content_.begin(), by_content_.end(), content,
                                   [&](std::size_t i, std::string_view wanted) { return tokens_[i].content < wanted; });
  return at == by_content_.end() || tokens_[*at].content != content ? nullptr : &tokens_[*at];
}

void AddedTokens::extract(Pieces& pieces, const Normalizer* normalizer) const {
  if (!in_text_.empty()) cut(pieces, nullptr, in_text_);
  if (normalizer != nullptr || !in_normalized_.empty()) cut(pieces, normalizer, in_normalized_);
}

void AddedTokens::cut(Pieces& pieces, const Normalizer* normalizer, const TokenFinder& finder) const {
  std::vector<Piece> list;
  list.reserve(pieces.list.size());
  for (Piece& piece : pieces.list) {
    if (piece.done()) {
      list.push_back(piece);
      continue;
    }
    if (normalizer != nullptr) normalizer->apply(pieces, piece);
    cut(piece, finder, list);
  }
  pieces.list = std::move(list);
}

void AddedTokens::cut(const Piece& piece, const TokenFinder& finder, std::vector<Piece>& list) const {
  const std::string_view text = piece.text;
  if (text.empty()) return;
  std::size_t done = 0;
  TokenFinder::Match match;
  for (std::size_t at = 0; !finder.empty() && finder.find(text, at, match);) {
    at = match.end;
    std::size_t begin = match.begin, end = match.end;
    const AddedToken& token = tokens_[match.token];
    if (begin < done || (split_special_ && token.special)) continue;
    if (token.single_word) {
      if (begin > 0 && is(text, before(text, begin), kWord)) continue;
      if (end < text.size() && is(text, end, kWord)) continue;
    }
    while (token.lstrip && begin > done && is(text, before(text, begin), kSpace)) begin = before(text, begin);
    while (token.rstrip && end < text.size() && is(text, end, kSpace)) end += utf8_size(text[end]);
    if (begin > done) list.push_back(Pieces::slice(piece, done, begin));
    list.push_back(Pieces::slice(piece, begin, end));
    list.back().token = token.id;
    done = end;
  }
  // Sliced even when it is all of it: the library then takes where it begins from its first character.
  if (done < text.size()) list.push_back(Pieces::slice(piece, done, text.size()));
}

}  // namespace components::tokenizer
