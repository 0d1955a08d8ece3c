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
