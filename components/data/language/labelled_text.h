#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "components/data/record/sequence.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/result.h"

namespace components::data {

/// Fields of a record with a label; "": the usual ones, which labelled_text.cpp lists.
struct LabelColumns {
  std::string text, text_pair, label;
};

/// Makes sequences of records that a head tells: {text, label}, {text, text_pair, label} or, of tags, {tokens, tags}.
/// The tokenizer's own tokens stand around them, whatever is cut. Called by several threads.
class LabelledTextEncoder {
 public:
  /// `max_length`: ids that a sequence is cut to; nothing: none is cut. `reads_labels`: false of rows to predict.
  LabelledTextEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, LabelColumns columns, LabelKind kind,
                      std::optional<std::int64_t> max_length, bool reads_labels);

  /// Failure: no JSON object; a text or a label is missing or of another type; tags and words differ in number.
  runner::core::Result<Sequence> operator()(const std::string& record, std::int64_t vocab_size) const;

 private:
  struct Fields;
  runner::core::Result<Sequence> tagged(const runner::core::Node& record, const Fields& fields) const;

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  LabelColumns columns_;
  LabelKind kind_;
  std::optional<std::int64_t> max_length_;
  bool reads_labels_;
};

}  // namespace components::data
