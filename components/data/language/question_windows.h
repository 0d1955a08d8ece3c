#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "components/data/record/sequence.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::data {

/// Fields of a record with a question; "": SQuAD's.
struct QuestionColumns {
  std::string question, context, answers;
};

/// Makes sequences of questions about contexts, {id, question, context, answers: {text, answer_start}}: windows of the
/// question with a part of the context, one behind the other. Called by several threads.
///
/// Source  Transformers' example run_qa.py, prepare_train_features
class QuestionEncoder {
 public:
  struct Options {
    std::optional<std::int64_t> max_length;  ///< of a window, in ids; nothing: one window has all of a context
    std::int64_t stride = 128;               ///< ids of the context that a window shares with the one before it
    bool reads_answers = true;               ///< false of rows to predict
  };
  QuestionEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, QuestionColumns columns, Options options);

  /// Sequence::given has id, context and answers. Failure: no JSON object; a field is missing or of another type; an
  /// answer does not stand where it says; the question leaves no room for its context.
  runner::core::Result<Sequence> operator()(const std::string& record, std::int64_t vocab_size) const;

 private:
  struct Answer {
    std::string text;
    std::int64_t begin = 0, end = 0;  ///< characters
  };
  struct Record {
    std::string id, question, context;
    std::vector<Answer> answers;
    std::vector<std::string> unread;
    FieldUse fields;
  };
  runner::core::Result<Record> read(const runner::core::Node& object) const;
  runner::core::Result<Sequence> windows_of(const Record& record) const;

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  QuestionColumns columns_;
  Options options_;
};

}  // namespace components::data
