#include "components/data/language/choice_text.h"

#include <utility>
#include <vector>

#include "components/data/fields/unread_fields.h"
#include "components/data/language/encoded_text.h"
#include "components/data/language/messages.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

constexpr const char *kChoices = "choices", *kFirst = "sent1", *kSecond = "sent2", *kEnding = "ending";

bool has(const Node& object, const std::string& key) {
  const Node* value = object.find(key);
  return value != nullptr && !value->is_null();
}

/// A question and what may stand behind it, and the fields that were read.
struct Choices {
  std::string question;
  std::vector<std::string> texts, read;
};

Result<Choices> listed(const Node& object, const std::string& key) {
  Choices choices;
  choices.read = {key, kChoices};
  const auto question = text_of(object, key);
  if (!question) return question.failure();
  choices.question = question.value();
  const Node& list = *object.find(kChoices);
  if (!list.is_sequence()) return Failure{std::string(kChoices) + " is " + type_of(list) + ", not a list of texts", ""};
  for (const Node& one : list.items()) {
    if (!one.is_string()) {
      return Failure{
          std::string(kChoices) + "[" + std::to_string(choices.texts.size()) + "] is " + type_of(one) + ", not a text",
          ""};
    }
    choices.texts.push_back(one.as_string());
  }
  return choices;
}

/// Each ending stands behind the second sentence.
Result<Choices> endings(const Node& object) {
  Choices choices;
  choices.read = {kFirst, kSecond};
  const auto first = text_of(object, kFirst), second = text_of(object, kSecond);
  if (!first) return first.failure();
  if (!second) return second.failure();
  choices.question = first.value();
  for (int i = 0;; ++i) {
    const std::string key = kEnding + std::to_string(i);
    if (!has(object, key)) break;
    const auto ending = text_of(object, key);
    if (!ending) return ending.failure();
    choices.texts.push_back(second.value() + " " + ending.value());
    choices.read.push_back(key);
  }
  return choices;
}

Result<Choices> choices_of(const Node& object, const std::string& question) {
  const std::string key = question.empty() ? "question" : question;
  if (has(object, kChoices) && has(object, key)) return listed(object, key);
  if (question.empty() && has(object, kFirst)) return endings(object);
  std::vector<std::string> names;
  for (const Node::Entry& entry : object.entries()) names.push_back(runner::core::quote(entry.key));
  return Failure{(has(object, kChoices) ? key : std::string(kChoices)) + " is missing: its fields are " +
                     runner::core::joined(names),
                 "a record has question, choices and label, or sent1, sent2, ending0, ending1 and label"};
}

}  // namespace

ChoiceEncoder::ChoiceEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, Columns columns,
                             std::optional<std::int64_t> max_length, bool reads_labels)
    : tokenizer_(std::move(tokenizer)),
      columns_(std::move(columns)),
      max_length_(max_length),
      reads_labels_(reads_labels) {}

Result<Sequence> ChoiceEncoder::operator()(const std::string& record, std::int64_t /*vocab_size*/) const {
  const Result<Node> parsed = runner::core::parse_json(record);
  if (!parsed) return parsed.failure();
  const Node& object = parsed.value();
  if (!object.is_mapping()) return Failure{"not an object", ""};
  auto choices = choices_of(object, columns_.question);
  if (!choices) return choices.failure();
  const auto count = std::ssize(choices.value().texts);
  if (count < 2) return Failure{"the record has fewer than two choices", ""};
  std::vector<Sequence> texts;
  for (const std::string& choice : choices.value().texts) {
    auto pair = encoded_whole(*tokenizer_, choices.value().question, &choice, max_length_);
    if (!pair) return pair;
    texts.push_back(std::move(pair.value()));
  }
  Sequence all = texts_of(texts);
  const std::string label = columns_.label.empty() ? "label" : columns_.label;
  std::int32_t right = 0;
  if (reads_labels_) {
    const Node* number = object.find(label);
    if (number == nullptr || number->is_null()) {
      return Failure{label + " is missing", "name the field: columns: {label: FIELD}"};
    }
    if (!number->is_integer() || number->as_integer() < 0 || number->as_integer() >= count) {
      return Failure{
          label + " is " + to_json(*number, -1) + ", not the number of a choice from 0 to " + std::to_string(count - 1),
          "leave such records out: on_bad_record: skip"};
    }
    right = static_cast<std::int32_t>(number->as_integer());
  }
  all.labels = {right};
  std::vector<std::string>& read = choices.value().read;
  if (reads_labels_) read.push_back(label);
  all.fields.add_all(object, read);
  if (!reads_labels_) read.push_back(label);
  all.unread = unread_fields(object, read, false);
  return all;
}

}  // namespace components::data
