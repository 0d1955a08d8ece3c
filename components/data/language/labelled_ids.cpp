#include "components/data/language/labelled_ids.h"

#include <iterator>
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

constexpr const char *kLabels = "labels", *kDecoderInputs = "decoder_input_ids";

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

}  // namespace components::data
