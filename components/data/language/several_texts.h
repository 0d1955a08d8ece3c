#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "components/data/data.h"
#include "components/data/record/sequence.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/result.h"

namespace components::data {

/// Fields of a record whose texts get vectors; "": the usual ones, which several_texts.cpp lists.
struct TextColumns {
  std::string text, positive, negative, score;
};

/// Makes sequences of records whose texts get vectors: {text}, {anchor, positive}, {anchor, positive, negative} or, of
/// kScores, two texts and a score. Each text has the tokenizer's own tokens around it. Called by several threads.
class SeveralTextsEncoder {
 public:
  /// `max_length`: ids that each text is cut to; nothing: none is cut. `reads_scores`: false of rows to predict.
  SeveralTextsEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, TextColumns columns, LabelKind kind,
                      std::optional<std::int64_t> max_length, bool reads_scores);

  /// Failure: no JSON object; a text or a score is missing or of another type.
  runner::core::Result<Sequence> operator()(const std::string& record, std::int64_t vocab_size) const;

 private:
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  TextColumns columns_;
  bool has_scores_;
  std::optional<std::int64_t> max_length_;
  bool reads_scores_;
};

}  // namespace components::data
