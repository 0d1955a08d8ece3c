#include "runner/cli/draft/task.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "runner/cli/draft/wrong_records.h"
#include "runner/core/scalar.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using core::Failure;
using core::Result;
using Kind = Task::Kind;
using Found = std::optional<Task>;

struct KindWord {
  Kind kind;
  const char* word;
};
constexpr KindWord kWords[] = {{Kind::kChat, "chat"},
                               {Kind::kCompletion, "completion"},
                               {Kind::kText, "text"},
                               {Kind::kPreferences, "preferences"},
                               {Kind::kReward, "reward"},
                               {Kind::kFeedback, "kto"},
                               {Kind::kClass, "classification"},
                               {Kind::kClasses, "multi_label"},
                               {Kind::kValue, "regression"},
                               {Kind::kTags, "tags"},
                               {Kind::kMaskedText, "masked_lm"},
                               {Kind::kAnswer, "question_answering"},
                               {Kind::kChoice, "multiple_choice"},
                               {Kind::kVector, "embedding"}};

struct Pair {
  std::string_view first, second;
};
/// That data sets read by themselves.
constexpr std::array<Pair, 5> kUsualTexts = {{{"text", "text_pair"},
                                              {"sentence1", "sentence2"},
                                              {"premise", "hypothesis"},
                                              {"question1", "question2"},
                                              {"question", "sentence"}}};
constexpr std::array<std::string_view, 3> kUsualText = {"text", "sentence", "review"};
/// Further names that say what they are.
constexpr std::array<std::string_view, 10> kTextNames = {"content", "body",        "comment", "tweet",    "message",
                                                         "title",   "description", "query",   "document", "utterance"};
constexpr std::array<std::string_view, 16> kLabelNames = {
    "label",  "labels", "class", "category", "sentiment", "intent", "emotion",    "topic",
    "rating", "stars",  "score", "quality",  "target",    "toxic",  "gold_label", "is_duplicate"};
/// Of these, those that name nothing else.
constexpr std::array<std::string_view, 3> kSureLabels = {"label", "labels", "class"};
constexpr std::array<std::string_view, 4> kTagNames = {"ner_tags", "tags", "labels", "label"};
constexpr std::array<std::string_view, 2> kWordNames = {"tokens", "words"};
constexpr std::array<Pair, 9> kAnswers = {{{"question", "answer"},
                                           {"question", "response"},
                                           {"query", "response"},
                                           {"prompt", "response"},
                                           {"input", "output"},
                                           {"source", "target"},
                                           {"article", "highlights"},
                                           {"document", "summary"},
                                           {"dialogue", "summary"}}};

/// Whether encoders alone learn it.
bool is_of_encoders(Kind kind) { return kind == Kind::kMaskedText || kind == Kind::kAnswer || kind == Kind::kChoice; }
/// Whether any model that reads texts learns it, by a head of its own.
bool has_head(Kind kind) {
  return kind == Kind::kClass || kind == Kind::kClasses || kind == Kind::kValue || kind == Kind::kTags ||
         kind == Kind::kVector;
}

std::string names_of(const std::vector<FieldFacts>& fields) {
  return core::joined(fields, ", ", [](const FieldFacts& field) { return core::quote(field.name); });
}

/// Looks for one task after the other.
class Chooser {
 public:
  Chooser(const std::vector<FieldFacts>& fields, const TaskRequest& request, const Ask& ask)
      : fields_(fields), request_(request), ask_(ask) {}

  Result<Task> choose() {
    for (const auto& [column, field] : request_.columns) {
      if (find(fields_, field) == nullptr)
        return Failure{"no record has the field " + core::quote(field), "they have " + names_of(fields_)};
    }
    Found found;
    const bool is_of_texts = request_.wanted == Kind::kText || request_.wanted == Kind::kMaskedText;
    if (request_.columns.empty() && !is_of_texts) failure_ = why_unread(fields_, request_.model);
    if (failure_) return *failure_;
    if (!request_.wanted) {
      found = preferences();
      for (const auto look : {&Chooser::answers, &Chooser::choices, &Chooser::vectors, &Chooser::feedback,
                              &Chooser::chat, &Chooser::tags, &Chooser::instruction, &Chooser::switches,
                              &Chooser::labelled, &Chooser::completion, &Chooser::unclear, &Chooser::text}) {
        if (!found && !failure_) found = (this->*look)();
      }
    } else {
      found = wanted(*request_.wanted);
    }
    if (failure_) return *failure_;
    if (found) return finished(std::move(*found));
    const std::string what = request_.wanted ? std::string("no records for ") + word_of(*request_.wanted)
                                             : "nothing in them that a model could learn";
    return Failure{"the records have the fields " + names_of(fields_) + ", and " + what,
                   "name what they are: --columns text=FIELD,label=FIELD or --columns prompt=FIELD,completion=FIELD"};
  }

 private:
  Found wanted(Kind kind) {
    switch (kind) {
      case Kind::kChat: return chat();
      case Kind::kCompletion: return completion();
      case Kind::kText:
      case Kind::kMaskedText: return text();
      case Kind::kPreferences:
      case Kind::kReward: return preferences();
      case Kind::kFeedback: return feedback();
      case Kind::kAnswer: return answers();
      case Kind::kChoice: return choices();
      case Kind::kVector: return vectors();
      case Kind::kTags: return tags();
      case Kind::kClass:
      case Kind::kClasses:
      case Kind::kValue: return labelled();
    }
    return std::nullopt;
  }

  /// Kinds that need a model which continues texts, and the names that were given.
  Result<Task> finished(Task task) {
    if (request_.wanted) task.kind = *request_.wanted;
    const std::string of =
        std::string("the records are for ") + word_of(task.kind) + " (" + task.of + "), and the model ";
    switch (request_.model) {
      case TaskRequest::Model::kDecoder:
        if (!is_of_encoders(task.kind)) return task;
        return Failure{of + "is a decoder, which has no such head", "name an encoder, such as a BERT"};
      case TaskRequest::Model::kEncoderDecoder:
        if (task.kind == Kind::kCompletion || request_.wanted == Kind::kText) return task;
        return Failure{of + "writes a text of another, as T5",
                       "name records of a text and what is to be written of it, --columns "
                       "prompt=FIELD,completion=FIELD; or learn spans that are cut out of texts, --task text"};
      case TaskRequest::Model::kEncoder: break;
    }
    if (task.kind == Kind::kText) task.kind = Kind::kMaskedText;
    if (has_head(task.kind) || is_of_encoders(task.kind)) return task;
    return Failure{of + "is an encoder, which continues no text",
                   "name a decoder, such as a Llama or a Qwen, or records of texts with labels"};
  }

  const FieldFacts* named(const std::string& column) const {
    const auto at = request_.columns.find(column);
    return at != request_.columns.end() ? find(fields_, at->second) : nullptr;
  }
  /// The field of a column: as it was named, or by one of its usual names.
  template <typename Names>
  const FieldFacts* field_of(const std::string& column, const Names& names) const {
    if (const FieldFacts* field = named(column)) return field;
    for (const std::string_view name : names) {
      if (const FieldFacts* field = find(fields_, std::string(name))) return field;
    }
    return nullptr;
  }
  const FieldFacts* field_of(const std::string& column) const {
    return field_of(column, std::array<std::string_view, 1>{column});
  }

  /// Adds what is read; `is_usual`: without being told.
  static void read(Task& task, const std::string& column, const FieldFacts& field, bool is_usual) {
    task.of += (task.of.empty() ? "" : ", ") + field.name;
    if (!is_usual) task.columns.emplace_back(column, field.name);
  }
  static void read(Task& task, const std::string& column, const FieldFacts& field) {
    read(task, column, field, field.name == column);
  }

  Found chat() {
    const FieldFacts* field = field_of("messages", std::array<std::string_view, 2>{"messages", "conversations"});
    if (field == nullptr) {
      const auto at = std::find_if(fields_.begin(), fields_.end(), [](const FieldFacts& one) {
        return one.is_dialogue && one.all(one.mapping_lists) && one.name != "prompt";
      });
      if (at != fields_.end()) field = &*at;
    }
    if (field == nullptr || field->mapping_lists == 0) return std::nullopt;
    if (!field->has_answer) {
      failure_ = Failure{"no conversation of " + core::quote(field->name) +
                             " has an answer of an assistant, which is what a model learns",
                         "name a file with answers; `roux generate` writes those of a model"};
      return std::nullopt;
    }
    Task task{.kind = Kind::kChat};
    read(task, "messages", *field, field->name == "messages" || field->name == "conversations");
    return task;
  }

  Found preferences() {
    const FieldFacts *chosen = field_of("chosen"), *rejected = field_of("rejected");
    if (chosen == nullptr || rejected == nullptr) return std::nullopt;
    Task task{.kind = Kind::kPreferences};
    const FieldFacts* prompt =
        field_of("prompt", std::array<std::string_view, 4>{"prompt", "question", "instruction", "query"});
    if (prompt != nullptr && prompt->texts + prompt->mapping_lists > 0) read(task, "prompt", *prompt);
    read(task, "chosen", *chosen);
    read(task, "rejected", *rejected);
    return task;
  }

  Found feedback() {
    const FieldFacts *prompt = field_of("prompt"), *answer = field_of("completion"), *label = field_of("label");
    if (prompt == nullptr || answer == nullptr || label == nullptr || !label->all(label->switches)) return std::nullopt;
    Task task{.kind = Kind::kFeedback};
    read(task, "prompt", *prompt);
    read(task, "completion", *answer);
    read(task, "label", *label);
    return task;
  }

  bool is_encoder() const { return request_.model == TaskRequest::Model::kEncoder; }

  Found answers() {
    const FieldFacts *question = find(fields_, "question"), *context = find(fields_, "context"),
                     *answers = find(fields_, "answers");
    const bool is_meant = is_encoder() || request_.wanted;
    if (!is_meant || question == nullptr || context == nullptr || answers == nullptr || answers->mappings == 0)
      return std::nullopt;
    return Task{.kind = Kind::kAnswer, .of = "question, context, answers"};
  }

  Found choices() {
    if (!is_encoder() && !request_.wanted) return std::nullopt;
    const bool is_swag = find(fields_, "sent1") != nullptr && find(fields_, "ending0") != nullptr;
    const FieldFacts *choices = find(fields_, "choices"), *label = find(fields_, "label");
    if (label == nullptr || (!is_swag && (choices == nullptr || choices->text_lists == 0))) return std::nullopt;
    return Task{.kind = Kind::kChoice,
                .of = is_swag ? "sent1, sent2, ending0, ..., label" : "question, choices, label"};
  }

  /// Pairs by their names; of an encoder a question and its answer, too.
  Found vectors() {
    const FieldFacts *anchor = find(fields_, "anchor"), *positive = find(fields_, "positive");
    if (anchor != nullptr && positive != nullptr) {
      const bool has_negative = find(fields_, "negative") != nullptr;
      return Task{.kind = Kind::kVector, .of = has_negative ? "anchor, positive, negative" : "anchor, positive"};
    }
    if (!is_encoder() && !request_.wanted) return std::nullopt;
    for (const auto& [one, other] : {Pair{"query", "document"}, Pair{"question", "answer"}}) {
      const FieldFacts *first = find(fields_, std::string(one)), *second = find(fields_, std::string(other));
      if (first == nullptr || second == nullptr || !first->all(first->texts) || !second->all(second->texts)) continue;
      return Task{.kind = Kind::kVector, .of = std::string(one) + ", " + std::string(other)};
    }
    return std::nullopt;
  }

  /// Alpaca's form, or Dolly's, where no other column is named.
  Found instruction() {
    if (find(fields_, "instruction") == nullptr || !request_.columns.empty()) return std::nullopt;
    for (const auto& [input, output] : {Pair{"input", "output"}, Pair{"context", "response"}}) {
      const FieldFacts* answer = find(fields_, std::string(output));
      if (answer == nullptr || !answer->all(answer->texts)) continue;
      const bool has_input = find(fields_, std::string(input)) != nullptr;
      return Task{.kind = Kind::kCompletion,
                  .of = "instruction, " + (has_input ? std::string(input) + ", " : "") + std::string(output)};
    }
    return std::nullopt;
  }

  Found completion() {
    Task task{.kind = Kind::kCompletion};
    const FieldFacts *prompt = field_of("prompt"), *answer = field_of("completion");
    if (prompt == nullptr && answer == nullptr) {
      if (Found found = instruction()) return found;
    }
    for (const Pair& names : kAnswers) {
      const FieldFacts *first = find(fields_, std::string(names.first)),
                       *second = find(fields_, std::string(names.second));
      if (prompt != nullptr && answer != nullptr) break;
      if (first == nullptr || second == nullptr || !second->all(second->texts)) continue;
      prompt = first;
      answer = second;
    }
    if (prompt == nullptr || answer == nullptr) return std::nullopt;
    read(task, "prompt", *prompt);
    read(task, "completion", *answer);
    return task;
  }

  Found tags() {
    const FieldFacts *words = field_of("text", kWordNames), *tags = field_of("label", kTagNames);
    if (words == nullptr || tags == nullptr || !words->all(words->text_lists)) return std::nullopt;
    if (!tags->all(tags->text_lists) && !tags->all(tags->number_lists)) return std::nullopt;
    Task task{.kind = Kind::kTags};
    read(task, "text", *words, std::find(kWordNames.begin(), kWordNames.end(), words->name) != kWordNames.end());
    read(task, "label", *tags, std::find(kTagNames.begin(), kTagNames.end(), tags->name) != kTagNames.end());
    task.has_entities = tags->has_bounds;
    return task;
  }

  /// Several fields of 0 and 1, as of one text with several classes; a record has them as one label.
  Found switches() {
    std::vector<std::string> names;
    for (const FieldFacts& one : fields_) {
      if (std::ranges::find(kSureLabels, one.name) != kSureLabels.end()) return std::nullopt;
      if (one.all(one.switches) || (one.all(one.whole + one.texts) && one.values == std::set<std::string>{"0", "1"}))
        names.push_back(one.name);
    }
    if (names.size() < 2 || !request_.columns.empty() || completion()) return std::nullopt;
    failure_ = Failure{core::joined(names) + " are 0 or 1 each, and a record has one label",
                       "name one, --columns label=" + names.front() +
                           ", or none, --task text; or write all as a list: label: [0, 1" +
                           (names.size() > 2 ? ", ...]" : "]")};
    return std::nullopt;
  }

  Found labelled() {
    const FieldFacts* label = field_of("label", kLabelNames);
    if (label == nullptr && request_.wanted) {
      label = asked("label", "is the label", [](const FieldFacts& one) {
        return one.values.size() > 1 || one.text_lists + one.number_lists > 0;
      });
    }
    if (label == nullptr) return std::nullopt;
    const auto problem = why_no_label(*label);
    const bool has_none = label->values.size() == 1 && *label->values.begin() == "-1";  // which a value may be, too
    const std::optional<Kind> kind = has_none ? std::nullopt : kind_of(*label);
    if (!kind) {
      const bool is_sure =
          std::find(std::begin(kSureLabels), std::end(kSureLabels), label->name) != std::end(kSureLabels);
      if (is_sure || has_none || request_.wanted || named("label") != nullptr) failure_ = problem;
      return std::nullopt;
    }
    Task task{.kind = *kind, .classes = label->values.size()};
    constexpr std::int64_t kLastPart = 20;  // of which one is held out
    const bool is_uneven = label->changes <= std::ssize(label->values) ||
                           label->newest >= label->records - std::max<std::int64_t>(1, label->records / kLastPart);
    task.is_sorted = *kind == Kind::kClass && is_uneven;
    if (!read_texts(task, *label)) return std::nullopt;
    read(task, "label", *label, label->name == "label" || label->name == "labels");
    return task;
  }

  /// What labels are; nothing where they are texts of their own.
  static std::optional<Kind> kind_of(const FieldFacts& label) {
    const std::int64_t lists = std::max(label.text_lists, label.number_lists);
    if (lists > 0 && label.all(lists + label.empty_lists)) return Kind::kClasses;
    if (label.all(label.switches)) return Kind::kClass;
    const bool are_texts = label.all(label.texts), are_numbers = label.all(label.whole + label.numbers);
    if (!are_texts && !are_numbers) return std::nullopt;
    const auto has_fraction = [](const std::string& value) {
      const auto read = core::resolve_scalar(value);
      return read.ok() && read.value().kind() == core::Node::Kind::kFloat;
    };
    if (std::all_of(label.values.begin(), label.values.end(), has_fraction)) return Kind::kValue;
    if (are_numbers && (label.numbers > 0 || label.values.size() > 50 || *label.values.begin() < "0"))
      return Kind::kValue;
    const auto few = static_cast<std::size_t>(std::max<std::int64_t>(2, label.records / 2));
    return label.values.size() < FieldFacts::kValuesMax && (label.values.size() <= few || !are_texts)
               ? std::optional(Kind::kClass)
               : std::nullopt;
  }

  /// The text of a label, or the two.
  bool read_texts(Task& task, const FieldFacts& label) {
    const FieldFacts *first = named("text"), *second = named("text_pair");
    if (first == nullptr) {
      for (const Pair& names : kUsualTexts) {
        const FieldFacts *one = find(fields_, std::string(names.first)),
                         *other = find(fields_, std::string(names.second));
        if (one == nullptr || other == nullptr || other == &label) continue;
        read(task, "text", *one, true);
        read(task, "text_pair", *other, true);
        return true;
      }
      first = text_field(&label);
    }
    if (first == nullptr) return false;
    const bool is_usual = std::find(kUsualText.begin(), kUsualText.end(), first->name) != kUsualText.end();
    read(task, "text", *first, is_usual && named("text") == nullptr);
    if (second != nullptr) read(task, "text_pair", *second);
    return true;
  }

  /// By its name, as the only one, or as it is answered.
  const FieldFacts* text_field(const FieldFacts* label) {
    for (const auto& names : {std::vector<std::string_view>(kUsualText.begin(), kUsualText.end()),
                              std::vector<std::string_view>(kTextNames.begin(), kTextNames.end())}) {
      const FieldFacts* field = field_of("text", names);
      if (field != nullptr && field != label && field->texts > 0) return field;
    }
    return asked("text", "is the text", [label](const FieldFacts& one) { return &one != label && one.all(one.texts); });
  }

  /// Several texts and something like a class beside them, under names that say nothing.
  Found unclear() {
    if (field_of("text", kUsualText) != nullptr) return std::nullopt;
    std::vector<std::string> labels;
    for (const FieldFacts& one : fields_) {
      const bool is_class = one.values.size() > 1 && static_cast<std::int64_t>(one.values.size()) * 10 <= one.records;
      if (is_class && !one.all(one.numbers)) labels.push_back(one.name);
    }
    if (labels.empty()) return std::nullopt;
    failure_ = Failure{"whether " + core::quote(labels.front()) + " is a label of the others cannot be told",
                       "say so, --columns text=FIELD,label=" + labels.front() + ", or --task text"};
    return std::nullopt;
  }

  Found text() {
    const FieldFacts* field = text_field(nullptr);
    if (field == nullptr && failure_) failure_ = two_texts().value_or(*failure_);
    if (field == nullptr) return std::nullopt;
    Task task{.kind = Kind::kText};
    read(task, "text", *field);
    return task;
  }

  /// Where records have two texts under names that say nothing, such as those of languages.
  std::optional<Failure> two_texts() const {
    std::vector<std::string> names;
    for (const FieldFacts& one : fields_) {
      if (one.all(one.texts)) names.push_back(one.name);
    }
    if (names.size() != 2 || is_encoder() || request_.wanted) return std::nullopt;
    const std::string both = "--columns prompt=" + names[0] + ",completion=" + names[1];
    if (request_.model == TaskRequest::Model::kEncoderDecoder)
      return Failure{"which field is read and which is written of it cannot be told: " + core::joined(names),
                     "name them: " + both};
    return Failure{"whether one field is written of the other cannot be told: " + core::joined(names),
                   "name both, " + both + ", or the one that is learnt, --columns text=" + names[0]};
  }

  /// The only field that can be one, or the one that is chosen. Null: there is none; or a failure was kept.
  template <typename Fits>
  const FieldFacts* asked(const std::string& column, const std::string& what, const Fits& fits) {
    if (const FieldFacts* field = named(column)) return field;
    std::vector<const FieldFacts*> fields;
    for (const FieldFacts& one : fields_) {
      if (fits(one)) fields.push_back(&one);
    }
    if (fields.size() < 2) return fields.empty() ? nullptr : fields.front();
    std::vector<std::string> names;
    for (const FieldFacts* one : fields) names.push_back(one->name);
    if (const auto answer = ask_("Which field " + what + "?", names)) return fields[*answer];
    failure_ = Failure{"which field " + what + " cannot be told: " + core::joined(names),
                       "name it: --columns " + column + "=" + names.front()};
    return nullptr;
  }

  const std::vector<FieldFacts>& fields_;
  const TaskRequest& request_;
  const Ask& ask_;
  std::optional<Failure> failure_;
};

}  // namespace

const char* word_of(Kind kind) {
  return std::find_if(std::begin(kWords), std::end(kWords), [&](const KindWord& one) { return one.kind == kind; })
      ->word;
}

std::optional<Kind> task_named(const std::string& word) {
  const auto at =
      std::find_if(std::begin(kWords), std::end(kWords), [&](const KindWord& one) { return one.word == word; });
  return at == std::end(kWords) ? std::nullopt : std::optional(at->kind);
}

std::vector<std::string> task_words() {
  std::vector<std::string> words;
  for (const KindWord& one : kWords) words.emplace_back(one.word);
  return words;
}

Result<Task> choose_task(const std::vector<FieldFacts>& fields, const TaskRequest& request, const Ask& ask) {
  return Chooser(fields, request, ask).choose();
}

}  // namespace runner::cli
