#include "components/data/language/several_texts.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "components/data/fields/unread_fields.h"
#include "components/data/label/label_table.h"
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

/// What the texts are called in the data sets of Sentence Transformers and elsewhere; the first that a record has
/// count.
struct Names {
  std::string_view text, positive;
};
constexpr std::array<Names, 8> kTexts = {{{"anchor", "positive"},
                                          {"query", "positive"},
                                          {"query", "document"},
                                          {"question", "answer"},
                                          {"sentence1", "sentence2"},
                                          {"text", "text_pair"},
                                          {"text", ""},
                                          {"sentence", ""}}};
constexpr std::string_view kNegative = "negative";
constexpr std::array<std::string_view, 3> kScores = {"score", "similarity_score", "label"};

bool has(const Node& object, std::string_view key) {
  const Node* value = object.find(key);
  return value != nullptr && !value->is_null();
}

Failure missing(const Node& object, const std::string& what, const char* column) {
  std::vector<std::string> names;
  for (const Node::Entry& entry : object.entries()) names.push_back(runner::core::quote(entry.key));
  return {
      what + " is missing: " + (names.empty() ? "it has no fields" : "its fields are " + runner::core::joined(names)),
      std::string("name the field: columns: {") + column + ": FIELD}"};
}

/// The fields of the texts, in order, or what is missing.
Result<std::vector<std::string>> texts_in(const Node& object, const TextColumns& columns, bool has_scores) {
  std::string text = columns.text, positive = columns.positive, negative = columns.negative;
  if (text.empty()) {
    const auto* const found = std::find_if(kTexts.begin(), kTexts.end(), [&](const Names& names) {
      return has(object, names.text) && (names.positive.empty() || !positive.empty() || has(object, names.positive));
    });
    if (found == kTexts.end()) return missing(object, "the text", "text");
    text = found->text;
    if (positive.empty()) positive = found->positive;
  }
  if (!positive.empty() && !has_scores && negative.empty() && has(object, kNegative)) negative = kNegative;
  if (has_scores && positive.empty()) return missing(object, "the second text", "text_pair");
  std::vector<std::string> fields = {text};
  if (!has(object, text)) return missing(object, text, "text");
  if (!positive.empty()) fields.push_back(positive);
  if (!positive.empty() && !has(object, positive)) return missing(object, positive, "text_pair");
  if (!negative.empty() && positive.empty()) return missing(object, "the second text", "text_pair");
  if (!negative.empty()) fields.push_back(negative);
  if (!negative.empty() && !has(object, negative)) return missing(object, negative, "negative");
  return fields;
}

}  // namespace

SeveralTextsEncoder::SeveralTextsEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, TextColumns columns,
                                         LabelKind kind, std::optional<std::int64_t> max_length, bool reads_scores)
    : tokenizer_(std::move(tokenizer)),
      columns_(std::move(columns)),
      has_scores_(kind == LabelKind::kScores),
      max_length_(max_length),
      reads_scores_(reads_scores) {}

Result<Sequence> SeveralTextsEncoder::operator()(const std::string& record, std::int64_t /*vocab_size*/) const {
  const Result<Node> parsed = runner::core::parse_json(record);
  if (!parsed) return parsed.failure();
  const Node& object = parsed.value();
  if (!object.is_mapping()) return Failure{"not an object", ""};
  const auto fields = texts_in(object, columns_, has_scores_ && reads_scores_);
  if (!fields) return fields.failure();
  std::vector<Sequence> texts;
  for (const std::string& field : fields.value()) {
    const auto text = text_of(object, field);
    if (!text) return text.failure();
    auto sequence = encoded_whole(*tokenizer_, text.value(), nullptr, max_length_);
    if (!sequence) return Failure{field + ": " + sequence.failure().message, sequence.failure().hint};
    texts.push_back(std::move(sequence.value()));
  }
  Sequence all = texts_of(texts);
  std::vector<std::string> read = fields.value(), used = read;
  // A pair that a label calls unlike would be learnt as one that is alike.
  if (has_scores_ || !reads_scores_) read.insert(read.end(), kScores.begin(), kScores.end());
  if (has_scores_ && reads_scores_) {
    std::string score = columns_.score;
    if (score.empty()) {
      const auto* const found =
          std::find_if(kScores.begin(), kScores.end(), [&](std::string_view name) { return has(object, name); });
      if (found == kScores.end()) return missing(object, "the score", "label");
      score = *found;
    }
    if (!has(object, score)) return missing(object, score, "label");
    auto given = label_text(*object.find(score), LabelKind::kValues, score);
    if (!given) return given.failure();
    all.given.push_back(std::move(given.value()));
    read.push_back(score);
    used.push_back(score);
  }
  all.unread = unread_fields(object, read, false);
  all.fields.add_all(object, used);
  return all;
}

}  // namespace components::data
