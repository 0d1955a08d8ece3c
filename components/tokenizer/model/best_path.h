#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "components/tokenizer/model/model.h"
#include "components/tokenizer/text/trie.h"
#include "components/tokenizer/text/unicode.h"

namespace components::tokenizer {

/// What a character without a token of its own has less than the token with the lowest score.
constexpr double kUnknownPenalty = 10;

/// Cuts `text` so that the sum of the scores of its tokens is largest (Kudo, arXiv:1804.10959).
///
/// score_of(id, length)  the score of a token of `trie`, as a double
/// unknown_score         of a character that is no token, whose id is `unknown` then
/// path                  memory
/// Score                 what sums are rounded to: double in `tokenizers`, float in `sentencepiece`
/// put(id, begin, end)   is called for each token, from the last one to the first
template <typename Score, typename ScoreOf, typename Put>
void cut_best(std::string_view text, const Trie& trie, const ScoreOf& score_of, double unknown_score,
              std::int32_t unknown, std::vector<PathNode>& path, const Put& put) {
  constexpr std::uint32_t kNowhere = 0xFFFFFFFF;
  path.assign(text.size() + 1, PathNode{0, -1, kNowhere});
  for (std::size_t at = 0; at < text.size();) {
    const double here = path[at].score;
    const std::size_t character = utf8_size(text[at]);
    const auto offer = [&](std::size_t end, double sum, std::int32_t id) {
      PathNode& node = path[end];
      const double score = static_cast<Score>(sum);
      if (node.begin != kNowhere && score <= node.score) return;
      node = {score, id, static_cast<std::uint32_t>(at)};
    };
    bool known = false;
    trie.find_all(text.substr(at), [&](std::size_t length, std::int32_t id) {
      offer(at + length, score_of(id, length) + here, id);
      known = known || length == character;
    });
    if (!known) offer(at + character, unknown_score + here, unknown);
    at += character;
  }
  for (std::size_t end = text.size(); end > 0; end = path[end].begin) put(path[end].id, path[end].begin, end);
}

}  // namespace components::tokenizer
