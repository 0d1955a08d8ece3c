#include "components/data/language/source_text.h"

#include <algorithm>
#include <utility>

namespace components::data {

using runner::core::Failure;
using runner::core::Result;

SourceTextEncoder::SourceTextEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, RecordColumns columns,
                                     DecoderIds decoder, Lengths lengths)
    : tokenizer_(std::move(tokenizer)), columns_(std::move(columns)), decoder_(decoder), lengths_(lengths) {}

Result<Sequence> SourceTextEncoder::operator()(const std::string& record, std::int64_t /*vocab_size*/) const {
  const Result<TextRecord> text = parse_text_record(record, columns_);
  if (!text) return text.failure();
  if (text.value().kind != TextRecord::Kind::kCompletion) {
    return Failure{"not a text with another one that the model writes of it",
                   "name their fields: columns: {prompt: FIELD, completion: FIELD}; of plain texts transforms: [{type: "
                   "span_corruption}] makes both"};
  }
  Result<Ids> source = encoded(text.value().prompt, lengths_.source),
              target = encoded(text.value().text, lengths_.target);
  if (!source) return source.failure();
  if (!target) return target.failure();
  if (source.value().ids.empty()) return Failure{"the prompt is empty", ""};
  if (target.value().ids.empty()) return Failure{"the completion is empty", ""};
  Sequence sequence;
  sequence.input = std::move(source.value().ids);
  sequence.whole = source.value().whole;
  sequence.labels = std::move(target.value().ids);
  sequence.decoder = decoder_input_of(sequence.labels, decoder_);
  sequence.whole_decoder = target.value().whole;
  sequence.unread = text.value().unread;
  sequence.fields = text.value().fields;
  sequence.fields.form = FieldForm::kInstruction;  // there is no chat format
  return sequence;
}

Result<SourceTextEncoder::Ids> SourceTextEncoder::encoded(const std::string& text,
                                                          std::optional<std::int64_t> length) const {
  const bool adds = tokenizer_->settings().add_special_tokens;
  const tokenizer::EncodeOptions options{.add_special_tokens = adds};
  auto encoding = tokenizer_->encode(text, options);
  if (!encoding) return encoding.failure();
  Ids made{std::move(encoding.value().ids)};
  const auto eos = adds ? tokenizer_->special().eos : std::nullopt;
  const bool lacks_end = eos && (made.ids.empty() || made.ids.back() != *eos);
  const std::int64_t whole = std::ssize(made.ids) + (lacks_end ? 1 : 0);
  if (length && whole > *length) {
    const std::int64_t room = std::max<std::int64_t>(0, *length - (lacks_end ? 1 : 0));
    auto cut = tokenizer_->encode(text, options,
                                  tokenizer::Truncation{.max_length = static_cast<std::size_t>(room),
                                                        .side = tokenizer_->settings().truncation_side});
    if (!cut) return cut.failure();
    made = {std::move(cut.value().ids), whole};
  }
  if (lacks_end) made.ids.push_back(*eos);
  return made;
}

}  // namespace components::data
