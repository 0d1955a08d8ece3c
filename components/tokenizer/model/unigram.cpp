#include "components/tokenizer/model/unigram.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "components/tokenizer/model/best_path.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {

using runner::core::RunError;

Unigram::Unigram(Config config, const std::string& file) : config_(std::move(config)) {
  if (config_.scores.empty()) throw RunError(file + ": model.vocab has no tokens");
  if (config_.unk_id) {
    if (*config_.unk_id < 0 || *config_.unk_id >= static_cast<std::int64_t>(config_.scores.size())) {
      throw RunError(file + ": model.unk_id is " + std::to_string(*config_.unk_id) + ", but model.vocab has " +
                     std::to_string(config_.scores.size()) + " tokens");
    }
    unknown_ = static_cast<std::int32_t>(*config_.unk_id);
  }
  unknown_score_ = *std::min_element(config_.scores.begin(), config_.scores.end()) - kUnknownPenalty;
  for (unsigned byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    byte_ids_[byte] = config_.byte_fallback ? config_.vocabulary.id_of(name).value_or(-1) : -1;
  }
  trie_ = make_trie(config_.vocabulary, file);
}

void Unigram::tokenize(std::string_view word, Scratch& scratch, Tokens& tokens) const {
  tokenize_once(word, scratch, tokens, [&] { cut(word, scratch, tokens); });
}

void Unigram::cut(std::string_view word, Scratch& scratch, Tokens& tokens) const {
  const std::size_t before = tokens.ids.size();
  const auto score_of = [&](std::int32_t id, std::size_t) { return config_.scores[static_cast<std::size_t>(id)]; };
  // What comes is in reverse; a run of what is unknown is one token.
  const auto put = [&](std::int32_t id, std::size_t begin, std::size_t end) {
    const auto length = static_cast<std::uint32_t>(end - begin);
    if (id < 0)
      throw RunError("the tokenizer has no token for " + runner::core::quote(word.substr(begin, length)) +
                     ", and model.unk_id names none for what is unknown");
    if (id == unknown_ && tokens.ids.size() > before && tokens.ids.back() == unknown_) {
      tokens.lengths.back() += length;
    } else {
      tokens.add(id, length);
    }
  };
  cut_best<double>(word, trie_, score_of, unknown_score_, unknown_, scratch.path, put);
  const auto first = static_cast<std::ptrdiff_t>(before);
  std::reverse(tokens.ids.begin() + first, tokens.ids.end());
  std::reverse(tokens.lengths.begin() + first, tokens.lengths.end());
  if (unknown_ < 0 || std::find(tokens.ids.begin() + first, tokens.ids.end(), unknown_) == tokens.ids.end()) return;
  Tokens all;
  for (std::size_t i = before, at = 0; i < tokens.ids.size(); at += tokens.lengths[i++]) {
    if (tokens.ids[i] != unknown_) {
      all.add(tokens.ids[i], tokens.lengths[i]);
    } else {
      add_unknown(word.substr(at, tokens.lengths[i]), all);
    }
  }
  tokens.cut(before);
  for (std::size_t i = 0; i < all.ids.size(); ++i) tokens.add(all.ids[i], all.lengths[i]);
}

void Unigram::add_unknown(std::string_view part, Tokens& tokens) const {
  const auto size = static_cast<std::uint32_t>(part.size());
  // A run of what is unknown may be the text of a token.
  const auto id = config_.vocabulary.id_of(part);
  const auto byte_of = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  const bool has_bytes = std::all_of(part.begin(), part.end(), [&](char c) { return byte_of(c) >= 0; });
  if (id || !has_bytes) return tokens.add(id.value_or(unknown_), size);
  // Each of its bytes stands for all of it.
  for (std::size_t i = 0; i < part.size(); ++i) tokens.add(byte_of(part[i]), i == 0 ? size : 0);
}

}  // namespace components::tokenizer
