#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "components/generation/beam_search.h"
#include "components/generation/left_out.h"
#include "components/model/model.h"
#include "components/tensor/autocast.h"
#include "components/tokenizer/tokenizer.h"

namespace components {
class TensorMap;
}

namespace components::generation {

/// What a model generates in place of what it is to learn: behind all that stands before the last run of learnt
/// positions of a row, or of a model with an encoder of the row's source, the most probable token each time, or the
/// best text of several beams. Draws no random number.
class Answers {
 public:
  struct Options {
    std::int64_t max_new_tokens = 64;
    LeftOut left_out = {};
    BeamOptions beams = {};
    std::int64_t positions = 0;  ///< of the model; 0: no limit. A prompt that fills them is answered with nothing.
    AutocastOptions autocast;
    std::function<bool()> interrupted = nullptr;  ///< true ends the texts where they are
  };
  using Judge = std::function<void(const std::string& told, const std::string& right)>;

  /// The model outlives it, is in evaluation mode, and keeps its weights.
  Answers(const model::Model& model, std::shared_ptr<const tokenizer::Tokenizer> tokenizer, Options options);

  /// Of the first `rows` rows of a batch of ids, each its generated text and the one that it has, without special
  /// tokens. A row that learns nothing, or all of it, is left out. RunError when ids cannot be made a text.
  void judge(const TensorMap& batch, std::int64_t rows, const Judge& judge);

 private:
  using Ids = std::vector<std::int32_t>;
  struct Task {
    Ids prompt, right;
  };

  /// Of a row; `real`: null where all are.
  struct Places {
    const std::int64_t* ids;
    const bool* real;
    std::int64_t length;
  };

  static Task task_of_source(const Places& source, const Places& target);
  static Task task_of(const std::int64_t* ids, const std::int64_t* target, const bool* real, std::int64_t length);
  std::vector<Task> tasks_of(const TensorMap& batch, std::int64_t rows) const;
  std::vector<Ids> answers_to(const std::vector<Task>& tasks) const;
  std::string decoded(const Ids& ids) const;

  const model::Model& model_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  Options options_;
  Ids end_ids_;
};

}  // namespace components::generation
