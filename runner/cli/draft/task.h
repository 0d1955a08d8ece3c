#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/draft/field_facts.h"
#include "runner/core/result.h"

namespace runner::cli {

/// What a model is to learn of records.
struct Task {
  enum class Kind {
    kChat,         ///< answers of conversations
    kCompletion,   ///< a completion of each prompt
    kText,         ///< texts
    kPreferences,  ///< of two completions the better one
    kReward,       ///< what tells them apart
    kFeedback,     ///< completions that are good or bad
    kClass,        ///< of a text, or a pair of them
    kClasses,      ///< several of a text
    kValue,        ///< a number
    kTags,         ///< a class of each word
    kMaskedText,   ///< words that are hidden
    kAnswer,       ///< where a context answers a question
    kChoice,       ///< which of several texts is right
    kVector,       ///< vectors of texts, of pairs that belong together
  };
  Kind kind = Kind::kText;
  /// `data.train.columns`, where names are not the usual ones, and the fields.
  std::vector<std::pair<std::string, std::string>> columns = {};
  std::string of = {};        ///< the fields that are read, for people: `premise, hypothesis, label`
  std::size_t classes = 0;    ///< different labels that were seen, of kClass
  bool has_entities = false;  ///< of kTags, they are IOB2's
  bool is_sorted = false;     ///< of kClass, as far as was seen: a part of the file may lack a class
};

/// The word of `--task`; and what one names.
const char* word_of(Task::Kind kind);
std::optional<Task::Kind> task_named(const std::string& word);
std::vector<std::string> task_words();

/// What is known beside the records.
struct TaskRequest {
  std::optional<Task::Kind> wanted = {};
  std::map<std::string, std::string> columns = {};  ///< that were named
  /// What the model can do: continue texts; write one of another, as T5; or tell something of it, as BERT.
  enum class Model { kDecoder, kEncoderDecoder, kEncoder };
  Model model = Model::kDecoder;
};

/// Asks which of several answers is meant; nothing: no one is there to answer.
using Ask =
    std::function<std::optional<std::size_t>(const std::string& question, const std::vector<std::string>& answers)>;

/// The task that records allow, and the model. Failure: none, or several and no word which.
core::Result<Task> choose_task(const std::vector<FieldFacts>& fields, const TaskRequest& request, const Ask& ask);

}  // namespace runner::cli
