#include "components/data/language/encoded_text.h"

#include <utility>

namespace components::data {

using runner::core::Failure;

runner::core::Result<Sequence> encoded_text(const tokenizer::Tokenizer& tokenizer, const std::string& text) {
  auto encoding = tokenizer.encode(text, tokenizer.for_text());
  if (!encoding) return encoding.failure();
  Sequence sequence;
  sequence.input = std::move(encoding.value().ids);
  add_end(tokenizer, sequence);
  if (sequence.input.empty()) return Failure{"the text is empty", ""};
  return sequence;
}

runner::core::Result<Sequence> encoded_whole(const tokenizer::Tokenizer& tokenizer, const std::string& text,
                                             const std::string* pair, std::optional<std::int64_t> max_length,
                                             std::vector<tokenizer::Offsets>* offsets) {
  const tokenizer::EncodeOptions options{.add_special_tokens = tokenizer.settings().add_special_tokens,
                                         .with_offsets = offsets != nullptr};
  const auto encode = [&](const std::optional<tokenizer::Truncation>& truncation) {
    return pair != nullptr ? tokenizer.encode_pair(text, *pair, options, truncation)
                           : tokenizer.encode(text, options, truncation);
  };
  auto encoding = encode(std::nullopt);
  if (!encoding) return encoding.failure();
  Sequence sequence;
  const std::int64_t whole = std::ssize(encoding.value().ids);
  if (max_length && whole > *max_length) {
    encoding = encode(tokenizer::Truncation{.max_length = static_cast<std::size_t>(*max_length),
                                            .side = tokenizer.settings().truncation_side});
    if (!encoding) return encoding.failure();
    sequence.whole = whole;
  }
  if (encoding.value().ids.empty()) return Failure{"the text is empty", ""};
  sequence.input = std::move(encoding.value().ids);
  sequence.types = std::move(encoding.value().type_ids);
  if (offsets != nullptr) *offsets = std::move(encoding.value().offsets);
  return sequence;
}

void add_end(const tokenizer::Tokenizer& tokenizer, Sequence& sequence, bool always) {
  const auto eos = tokenizer.special().eos;
  if (!eos || !tokenizer.settings().add_special_tokens) return;
  const bool labelled = !sequence.labels.empty();
  if (always || sequence.input.empty() || sequence.input.back() != *eos) {
    sequence.input.push_back(*eos);
    if (labelled) sequence.labels.push_back(*eos);
  } else if (labelled) {
    sequence.labels.back() = *eos;  // the tokenizer has added it
  }
}

}  // namespace components::data
