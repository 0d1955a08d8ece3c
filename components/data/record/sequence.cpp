#include "components/data/record/sequence.h"

#include <algorithm>
#include <string>
#include <utility>

#include "components/tensor/tensor_spec.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

using runner::core::counted_large;
using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

constexpr const char *kInputIds = "input_ids", *kLabels = "labels";
constexpr const char* kMoreIds = "if it is a right one, set a larger vocab_size, in data.train as well";
constexpr std::int64_t kTypes = 65'536;

/// Which integers a list may hold.
struct Range {
  std::int64_t end;  ///< all are below it, and not negative
  bool is_vocabulary;
  bool ignored;      ///< kPadTarget is one, too
  std::string what;  ///< after the value that is none: `and an id is ...`
};

Result<std::vector<std::int32_t>> list_of(const Node& record, const char* key, const Range& range) {
  std::vector<std::int32_t> list;
  const Node* node = record.find(key);
  if (node == nullptr || node->is_null()) return list;
  const std::string name = key;
  if (!node->is_sequence()) return Failure{name + " is not a list of integers", ""};
  if (node->items().empty()) return Failure{name + " is empty", ""};
  list.reserve(node->items().size());
  for (const Node& item : node->items()) {
    const auto wrong = [&](const std::string& why, const std::string& hint = "") {
      return Failure{name + "[" + std::to_string(list.size()) + "] is " + to_json(item, -1) + ", " + why, hint};
    };
    if (!item.is_integer()) return wrong("which is no integer");
    const std::int64_t value = item.as_integer();
    if (range.ignored && value == kPadTarget) {
      list.push_back(static_cast<std::int32_t>(value));
      continue;
    }
    if (value < 0) return wrong(range.what);
    if (value >= range.end) return wrong(range.what, range.is_vocabulary ? kMoreIds : "");
    list.push_back(static_cast<std::int32_t>(value));
  }
  return list;
}

/// `labels has 3 values, and input_ids 4`; no text where they fit.
std::string length_problem(const char* key, const std::vector<std::int32_t>& list, const char* other,
                           const std::vector<std::int32_t>& as_long_as) {
  if (list.empty() || list.size() == as_long_as.size()) return "";
  return std::string(key) + " has " + counted_large(static_cast<std::int64_t>(list.size()), "value", "values") +
         ", and " + other + " has " + std::to_string(as_long_as.size());
}

}  // namespace

std::int64_t Sequence::longest() const { return std::max(input_length(), decoder_length()); }

std::int64_t Sequence::input_length() const {
  std::size_t longest = std::max(rejected_at, input.size() - rejected_at);
  if (!begins.empty()) {
    longest = input.size() - static_cast<std::size_t>(begins.back());
    for (std::size_t i = 0, from = 0; i < begins.size(); ++i) {
      longest = std::max(longest, static_cast<std::size_t>(begins[i]) - from);
      from = static_cast<std::size_t>(begins[i]);
    }
  }
  return std::max(whole, static_cast<std::int64_t>(longest));
}

std::int64_t Sequence::decoder_length() const {
  return std::max(whole_decoder, static_cast<std::int64_t>(decoder.size()));
}

void Sequence::cut(std::int64_t length, bool first) {
  if (rejected_at > 0) return cut_pair(length, first);
  for (auto* list : {&input, &labels, &mask, &types, &decoder}) {
    if (list->size() <= static_cast<std::size_t>(length)) continue;
    first ? list->erase(list->begin() + length, list->end()) : list->erase(list->begin(), list->end() - length);
  }
}

void Sequence::cut_pair(std::int64_t length, bool first) {
  const auto middle = static_cast<std::ptrdiff_t>(rejected_at);
  Sequence chosen, rejected;
  chosen.input.assign(input.begin(), input.begin() + middle);
  chosen.labels.assign(labels.begin(), labels.begin() + middle);
  rejected.input.assign(input.begin() + middle, input.end());
  rejected.labels.assign(labels.begin() + middle, labels.end());
  chosen.cut(length, first);
  rejected.cut(length, first);
  *this = pair_of(std::move(chosen), rejected);
}

bool learns(std::span<const std::int32_t> target, std::size_t rejected_at) {
  const auto any = [](std::span<const std::int32_t> part) {
    return std::any_of(part.begin(), part.end(), [](std::int32_t id) { return id != kPadTarget; });
  };
  return rejected_at == 0 ? any(target) : any(target.first(rejected_at)) && any(target.subspan(rejected_at));
}

Sequence texts_of(const std::vector<Sequence>& texts) {
  Sequence all;
  for (const Sequence& text : texts) {
    if (!all.input.empty()) all.begins.push_back(static_cast<std::int32_t>(all.input.size()));
    all.input.insert(all.input.end(), text.input.begin(), text.input.end());
    all.types.insert(all.types.end(), text.types.begin(), text.types.end());
    all.whole = std::max(all.whole, text.whole);
  }
  return all;
}

Sequence pair_of(Sequence chosen, const Sequence& rejected) {
  Sequence pair = std::move(chosen);
  pair.rejected_at = pair.input.size();
  pair.input.insert(pair.input.end(), rejected.input.begin(), rejected.input.end());
  pair.labels.insert(pair.labels.end(), rejected.labels.begin(), rejected.labels.end());
  // Nothing predicts the first token of a sequence, and the last one of the other sequence stands before this one.
  pair.labels[pair.rejected_at] = static_cast<std::int32_t>(kPadTarget);
  return pair;
}

std::vector<std::int32_t> Sequence::target() const {
  if (!decoder.empty() && !labels.empty()) return labels;
  std::vector<std::int32_t> target = !labels.empty() ? labels : !decoder.empty() ? decoder : input;
  if (labels.empty() && decoder.empty()) {
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) target[i] = static_cast<std::int32_t>(kPadTarget);
    }
  }
  std::rotate(target.begin(), target.begin() + 1, target.end());
  target.back() = static_cast<std::int32_t>(kPadTarget);
  return target;
}

std::vector<std::int32_t> Sequence::own_target() const {
  std::vector<std::int32_t> target = labels.empty() ? input : labels;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) target[i] = static_cast<std::int32_t>(kPadTarget);
  }
  return target;
}

Result<Sequence> parse_sequence(std::string_view text, std::int64_t vocab_size) {
  const Result<Node> parsed = runner::core::parse_json(text);
  return parsed ? sequence_of(parsed.value(), vocab_size) : parsed.failure();
}

std::vector<std::int32_t> decoder_input_of(const std::vector<std::int32_t>& labels, const DecoderIds& ids) {
  std::vector<std::int32_t> input = {ids.start};
  input.reserve(labels.size());
  for (std::size_t i = 0; i + 1 < labels.size(); ++i)
    input.push_back(labels[i] == kPadTarget ? ids.padding : labels[i]);
  return input;
}

Result<Sequence> sequence_of(const Node& object, std::int64_t vocab_size, const DecoderIds* written) {
  if (!object.is_mapping()) return Failure{"not an object with input_ids", ""};
  Sequence sequence;
  const std::string below = " below vocab_size " + std::to_string(vocab_size);
  const Range ids{vocab_size, true, false, "and an id is 0 or more and" + below};
  const Range labels{vocab_size, true, true, "and a label is -100, or 0 or more and" + below};
  const Range types{kTypes, false, false, "and a token type is 0 or more and below " + std::to_string(kTypes)};
  const Range bits{2, false, false, "and a mask holds 0 and 1"};
  struct Field {
    const char* key;
    const Range& range;
    std::vector<std::int32_t>& list;
  };
  for (const Field& field : {Field{kInputIds, ids, sequence.input}, Field{kLabels, labels, sequence.labels},
                             Field{kAttentionMask, bits, sequence.mask}, Field{kTokenTypes, types, sequence.types},
                             Field{kDecoderInput, ids, sequence.decoder}}) {
    auto list = list_of(object, field.key, field.range);
    if (!list) return list.failure();
    field.list = std::move(list.value());
  }
  if (sequence.input.empty()) return Failure{"input_ids is missing", ""};
  if (written != nullptr && sequence.labels.empty()) {
    return Failure{"labels is missing, and the model writes it of input_ids", "give each line labels"};
  }
  if (written != nullptr && sequence.decoder.empty()) sequence.decoder = decoder_input_of(sequence.labels, *written);
  const bool decodes = !sequence.decoder.empty();
  for (const std::string& problem : {length_problem(kAttentionMask, sequence.mask, kInputIds, sequence.input),
                                     length_problem(kTokenTypes, sequence.types, kInputIds, sequence.input),
                                     length_problem(kLabels, sequence.labels, decodes ? kDecoderInput : kInputIds,
                                                    decodes ? sequence.decoder : sequence.input)}) {
    if (!problem.empty()) return Failure{problem, ""};
  }
  if (!sequence.mask.empty() && std::find(sequence.mask.begin(), sequence.mask.end(), 1) == sequence.mask.end()) {
    return Failure{"attention_mask has no 1", ""};
  }
  return sequence;
}

}  // namespace components::data
