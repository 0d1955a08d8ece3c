#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "components/data/record/sequence.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/result.h"

namespace components::data {

/// Makes sequences of records of which one of several texts is right: {question, choices, label}, or SWAG's {sent1,
/// sent2, ending0, ..., label}. Each choice is a text of its own, a pair of the question and the choice. Called by
/// several threads.
///
/// Source  Transformers' example run_swag.py, preprocess_function
class ChoiceEncoder {
 public:
  /// Fields of the question and of the label; "": the usual ones.
  struct Columns {
    std::string question, label;
  };
  /// `max_length`: ids that each pair is cut to; nothing: none is cut. `reads_labels`: false of rows to predict.
  ChoiceEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, Columns columns,
                std::optional<std::int64_t> max_length, bool reads_labels);

  /// Failure: no JSON object; a field is missing or of another type; the label is none of the choices.
  runner::core::Result<Sequence> operator()(const std::string& record, std::int64_t vocab_size) const;

 private:
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  Columns columns_;
  std::optional<std::int64_t> max_length_;
  bool reads_labels_;
};

}  // namespace components::data
