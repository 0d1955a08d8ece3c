#include "components/data/language/encoded_text.h"

#include <utility>

namespace components::data {

using runner::core::Failure;

runner::core::Result<IdsLine> encoded_text(const tokenizer::Tokenizer& tokenizer, const std::string& text) {
  auto encoding = tokenizer.encode(text, tokenizer.for_text());
  if (!encoding) return encoding.failure();
  IdsLine line;
  line.input = std::move(encoding.value().ids);
  add_end(tokenizer, line);
  if (line.input.empty()) return Failure{"the text is empty", ""};
  return line;
}

void add_end(const tokenizer::Tokenizer& tokenizer, IdsLine& line, bool always) {
  const auto eos = tokenizer.special().eos;
  if (!eos || !tokenizer.settings().add_special_tokens) return;
  const bool labelled = !line.labels.empty();
  if (always || line.input.empty() || line.input.back() != *eos) {
    line.input.push_back(*eos);
    if (labelled) line.labels.push_back(*eos);
  } else if (labelled) {
    line.labels.back() = *eos;  // the tokenizer has added it
  }
}

}  // namespace components::data
