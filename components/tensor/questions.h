#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace components::data {

/// Questions about contexts, as windows: a sample is a question with a part of its context, and windows of one question
/// follow each other.
struct Questions {
  struct Question {
    std::string id;           ///< may be empty
    std::size_t context = 0;  ///< in `contexts`
    std::vector<std::string> answers;
  };
  struct Window {
    std::size_t question = 0;
    std::size_t at = 0;  ///< of its first token, in `offsets`
  };

  std::vector<std::string> contexts;  ///< in UTF-8
  std::vector<Question> all;
  std::vector<Window> windows;  ///< by sample
  /// Of each token of each window, where it begins and ends in its context, in characters; -1 of others.
  std::vector<std::int32_t> offsets;
  bool some_have_none = false;  ///< the first set, data.train, has questions without an answer

  /// Characters [begin, end) of the context of a question.
  std::string text_of(std::size_t question, std::int64_t begin, std::int64_t end) const;
};

}  // namespace components::data
