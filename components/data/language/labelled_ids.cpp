#include "components/data/language/labelled_ids.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/data/label/label_table.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

constexpr const char *kInputIds = "input_ids", *kLabels = "labels", *kDecoderInputs = "decoder_input_ids";

/// A class for each id, or kPadTarget.
Result<Sequence> tagged(Sequence sequence, const Node& labels) {
  if (!labels.is_sequence()) {
    return Failure{std::string(kLabels) + " is not a list", "give each id the number or name of its class, or -100"};
  }
  if (labels.items().size() != sequence.input.size()) {
    return Failure{"labels has " + runner::core::counted_large(std::ssize(labels.items()), "number", "numbers") +
                       ", and input_ids " + std::to_string(sequence.input.size()),
                   "give each id the number or name of its class, or -100"};
  }
  for (const Node& label : labels.items()) {
    if (label.is_integer() && label.as_integer() == kPadTarget) {
      sequence.labels.push_back(static_cast<std::int32_t>(kPadTarget));
      continue;
    }
    auto text = label_text(label, LabelKind::kTags, kLabels);
    if (!text) return text.failure();
    sequence.labels.push_back(static_cast<std::int32_t>(sequence.given.size()));
    sequence.given.push_back(std::move(text.value()));
  }
  return sequence;
}

}  // namespace

Result<Sequence> labelled_ids(std::string_view line, std::int64_t vocab_size, LabelKind kind, bool needed) {
  Result<Node> parsed = runner::core::parse_json(line);
  if (!parsed) return parsed.failure();
  Node& record = parsed.value();
  const Node* found = record.is_mapping() ? record.find(kLabels) : nullptr;
  if (record.is_mapping() && record.find(kDecoderInputs) != nullptr) {
    return Failure{std::string(kDecoderInputs) + " is here, and the model reads input_ids alone", ""};
  }
  const bool has_labels = found != nullptr && !found->is_null();
  if (needed && !has_labels && record.is_mapping()) {
    return kind == LabelKind::kMasked
               ? Failure{"labels is missing, and the model's head learns the ids that were masked",
                         "give each line labels: the id that was masked, and -100 at all others; or add transforms: "
                         "[{type: mask_tokens}], which masks some"}
               : Failure{"labels is missing, and the model's head learns it", "give each line labels"};
  }
  const Node labels = has_labels && needed ? *found : Node();
  if (kind != LabelKind::kMasked || !needed) record.erase(kLabels);
  auto sequence = sequence_of(record, vocab_size);
  if (!sequence) return sequence;
  if (!needed) {
    // Of tags, each position has one.
    const std::int64_t none = kind == LabelKind::kTags ? 0 : kPadTarget;
    if (kind == LabelKind::kTags || kind == LabelKind::kMasked) {
      sequence.value().labels.assign(sequence.value().input.size(), static_cast<std::int32_t>(none));
    }
    return sequence;
  }
  if (kind == LabelKind::kMasked) return sequence;
  if (kind == LabelKind::kTags) return tagged(std::move(sequence).value(), labels);
  auto given = label_texts(labels, kind, kLabels);
  if (!given) return given.failure();
  sequence.value().given = std::move(given.value());
  return sequence;
}

namespace {

/// `input_ids`, a list of ids, or a list of such lists, one for each text.
Result<Sequence> texts_of_ids(const Node& record, std::int64_t vocab_size) {
  const Node* lists = record.find(kInputIds);
  const bool has_several =
      lists != nullptr && lists->is_sequence() && !lists->items().empty() && lists->items().front().is_sequence();
  if (!has_several) return sequence_of(record, vocab_size);
  std::vector<Sequence> texts;
  for (std::size_t i = 0; i < lists->items().size(); ++i) {
    Node text = Node::mapping();
    for (const Node::Entry& entry : record.entries()) {
      const bool has_one = entry.value.is_sequence() && i < entry.value.items().size();
      text.set(entry.key, has_one ? entry.value.items()[i] : Node());
    }
    auto sequence = sequence_of(text, vocab_size);
    if (!sequence) {
      return Failure{std::string(kInputIds) + "[" + std::to_string(i) + "]: " + sequence.failure().message,
                     sequence.failure().hint};
    }
    if (!sequence.value().mask.empty()) {
      return Failure{std::string(kAttentionMask) + " is here, and each text of a record is read whole", "remove it"};
    }
    texts.push_back(std::move(sequence.value()));
  }
  return texts_of(texts);
}

/// The places of the first and the last id of an answer, or the number of the right choice.
std::optional<Failure> take_numbers(const Node& labels, LabelKind kind, Sequence& sequence) {
  const bool are_spans = kind == LabelKind::kSpans;
  const std::vector<Node> numbers = labels.is_sequence() ? labels.items() : std::vector<Node>{labels};
  const std::int64_t end = are_spans ? std::ssize(sequence.input) : std::ssize(sequence.begins) + 1;
  const auto is_one = [end](const Node& number) {
    return number.is_integer() && number.as_integer() >= 0 && number.as_integer() < end;
  };
  if (std::ssize(numbers) != (are_spans ? 2 : 1) || !std::all_of(numbers.begin(), numbers.end(), is_one)) {
    return Failure{std::string(kLabels) + " is " + to_json(labels, -1) + ", not " +
                       (are_spans ? "the places of the first and last id of an answer, from 0 to "
                                  : "the number of a choice, from 0 to ") +
                       std::to_string(end - 1),
                   ""};
  }
  for (const Node& number : numbers) sequence.labels.push_back(static_cast<std::int32_t>(number.as_integer()));
  return std::nullopt;
}

}  // namespace

Result<Sequence> ids_of_texts(std::string_view line, std::int64_t vocab_size, LabelKind kind, bool needed) {
  Result<Node> parsed = runner::core::parse_json(line);
  if (!parsed) return parsed.failure();
  Node& record = parsed.value();
  if (!record.is_mapping()) return sequence_of(record, vocab_size);
  const Node* found = record.find(kLabels);
  const bool learns = needed && kind != LabelKind::kTexts;
  if (learns && (found == nullptr || found->is_null())) {
    return Failure{"labels is missing, and the model learns it", "give each line labels"};
  }
  const Node labels = learns ? *found : Node();
  record.erase(kLabels);
  auto all = kind == LabelKind::kSpans ? sequence_of(record, vocab_size) : texts_of_ids(record, vocab_size);
  if (!all) return all;
  if (kind == LabelKind::kScores && learns) {
    auto given = label_texts(labels, LabelKind::kValues, kLabels);
    if (!given) return given.failure();
    all.value().given = std::move(given.value());
  } else if (are_numbers(kind) && !learns) {
    all.value().labels.assign(kind == LabelKind::kSpans ? 2 : 1, 0);
  } else if (are_numbers(kind)) {
    if (auto wrong = take_numbers(labels, kind, all.value())) return *wrong;
  }
  return all;
}

}  // namespace components::data
