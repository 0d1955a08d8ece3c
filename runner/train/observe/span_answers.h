#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "components/tensor/questions.h"
#include "runner/core/tensor_fwd.h"

namespace components {
class TensorMap;
}
namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// The answers that a head of question answering gives to the questions of a set, from the logits of all of their
/// windows.
///
/// Source  Transformers' example utils_qa.py, postprocess_qa_predictions, with n_best_size 20 and max_answer_length 30
class SpanAnswers {
 public:
  /// `questions` outlives it.
  explicit SpanAnswers(const components::data::Questions& questions);

  /// The windows of a batch, from sample `first` of the set on: kOutput [B, T, 2], and kAttentionMask where there is
  /// one.
  void add(std::int64_t first, const components::TensorMap& batch);
  /// Adds the windows of all ranks; all have to call it.
  void join(distributed::ProcessGroup& ranks);

  struct Answer {
    std::string text;  ///< "" for none
    double score = 0;  ///< the sum of both logits
  };
  /// Nothing for a question without a window so far.
  std::optional<Answer> answer_to(std::size_t question) const;

  static constexpr std::int64_t kBestOfEach = 20;  ///< first and last tokens that are joined
  static constexpr std::int64_t kLongest = 30;     ///< tokens of an answer

 private:
  /// Characters of the context.
  struct Best {
    double score, begin = 0, end = 0;
    double none;  ///< the lowest of the scores of no answer
  };
  void add_window(const components::data::Questions::Window& window, const at::Tensor& logits_T2);

  const components::data::Questions& questions_;
  std::vector<Best> best_;  ///< by question
};

}  // namespace runner::train
