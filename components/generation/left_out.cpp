#include "components/generation/left_out.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace components::generation {
namespace {

constexpr float kLeftOut = -std::numeric_limits<float>::infinity();

void leave_out_one(std::span<float> logits, std::int32_t id) {
  if (id >= 0 && static_cast<std::size_t>(id) < logits.size()) logits[static_cast<std::size_t>(id)] = kLeftOut;
}

/// What has followed the last n - 1 tokens before.
void leave_out_repeated(std::span<float> logits, std::span<const std::int32_t> tokens, std::size_t n) {
  if (tokens.size() < n) return;
  const auto last = tokens.last(n - 1);
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    if (std::equal(last.begin(), last.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i)))
      leave_out_one(logits, tokens[i + n - 1]);
  }
}

}  // namespace

bool leave_out(std::span<float> logits, const TextSoFar& text, const LeftOut& which,
               std::span<const std::int32_t> end_ids) {
  const bool is_short = text.new_tokens < which.min_new_tokens;
  if (!is_short && which.no_repeat_ngram_size <= 0) return true;
  if (which.no_repeat_ngram_size > 0) {
    leave_out_repeated(logits, text.tokens, static_cast<std::size_t>(which.no_repeat_ngram_size));
  }
  if (is_short) {
    for (const std::int32_t id : end_ids) leave_out_one(logits, id);
  }
  return std::any_of(logits.begin(), logits.end(), [](float logit) { return logit != kLeftOut; });
}

}  // namespace components::generation
