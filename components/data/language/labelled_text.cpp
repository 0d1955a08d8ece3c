#include "components/data/language/labelled_text.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "components/data/fields/unread_fields.h"
#include "components/data/label/label_table.h"
#include "components/data/language/encoded_text.h"
#include "components/data/language/messages.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

/// What texts are called in GLUE and elsewhere; "" where there is no second one. The first that a record has counts.
struct TextNames {
  std::string_view text, pair;
};
constexpr std::array<TextNames, 8> kTexts = {{{"text", "text_pair"},
                                              {"sentence1", "sentence2"},
                                              {"premise", "hypothesis"},
                                              {"question1", "question2"},
                                              {"question", "sentence"},
                                              {"text", ""},
                                              {"sentence", ""},
                                              {"review", ""}}};
constexpr std::array<TextNames, 2> kWords = {{{"tokens", ""}, {"words", ""}}};
constexpr std::array<std::string_view, 2> kLabels = {"label", "labels"};
constexpr std::array<std::string_view, 4> kTags = {"ner_tags", "tags", "labels", "label"};

bool has(const Node& object, std::string_view key) {
  const Node* value = object.find(key);
  return value != nullptr && !value->is_null();
}

/// `its fields are a, b`, for a message.
std::string fields_of(const Node& object) {
  std::vector<std::string> names;
  for (const Node::Entry& entry : object.entries()) names.push_back(runner::core::quote(entry.key));
  return names.empty() ? "it has no fields" : "its fields are " + runner::core::joined(names);
}

}  // namespace

/// Where a record has what is read.
struct LabelledTextEncoder::Fields {
  std::string text, pair, label;
  bool has_pair = false;

  /// Or what is missing.
  static Result<Fields> of(const Node& object, const LabelColumns& columns, LabelKind kind, bool reads_labels) {
    const bool tags = kind == LabelKind::kTags;
    Fields fields{columns.text, columns.text_pair, columns.label};
    const auto missing = [&](const std::string& what, const char* column) {
      if (object.find(what) != nullptr)
        return Failure{what + " is null", "give it a value, or leave such records out: on_bad_record: skip"};
      const bool is_pair = has(object, "chosen") && has(object, "rejected");
      return Failure{what + " is missing: " + fields_of(object),
                     is_pair ? "write loss: reward, by which a head of one value learns pairs"
                             : std::string("name the field: columns: {") + column + ": FIELD}"};
    };
    const std::span<const TextNames> usual = tags ? std::span<const TextNames>(kWords) : kTexts;
    if (fields.text.empty()) {
      const auto found = std::find_if(usual.begin(), usual.end(), [&](const TextNames& names) {
        const bool pair_fits = names.pair.empty() || has(object, names.pair) || !fields.pair.empty();
        return has(object, names.text) && pair_fits;
      });
      if (found == usual.end()) {
        for (const TextNames& names : usual) {  // of those that are there
          const auto is_there = [&](const auto& name) { return name.empty() || object.find(name) != nullptr; };
          if (!is_there(names.text) || !is_there(names.pair)) continue;
          return missing(std::string(has(object, names.text) ? names.pair : names.text), "text");
        }
        return missing(tags ? "the list of words" : "the text", "text");
      }
      fields.text = found->text;
      if (fields.pair.empty() && !found->pair.empty()) fields.pair = found->pair;
    }
    if (!has(object, fields.text)) return missing(fields.text, "text");
    if (!fields.pair.empty() && !has(object, fields.pair)) return missing(fields.pair, "text_pair");
    fields.has_pair = !fields.pair.empty();
    if (!reads_labels) return fields;
    if (fields.label.empty()) {
      const std::span<const std::string_view> names = tags ? std::span<const std::string_view>(kTags) : kLabels;
      const auto found =
          std::find_if(names.begin(), names.end(), [&](std::string_view name) { return has(object, name); });
      if (found == names.end()) return missing("the label", "label");
      fields.label = *found;
    }
    if (!has(object, fields.label)) return missing(fields.label, "label");
    return fields;
  }
};

LabelledTextEncoder::LabelledTextEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, LabelColumns columns,
                                         LabelKind kind, std::optional<std::int64_t> max_length, bool reads_labels)
    : tokenizer_(std::move(tokenizer)),
      columns_(std::move(columns)),
      kind_(kind),
      max_length_(max_length),
      reads_labels_(reads_labels) {}

/// Of each word its first token has the word's tag, and no other one, as Transformers' examples have it.
Result<Sequence> LabelledTextEncoder::tagged(const Node& record, const Fields& fields) const {
  const Node& words = *record.find(fields.text);
  const Node* tags = reads_labels_ ? record.find(fields.label) : nullptr;
  for (const auto& [list, key] : {std::pair{&words, &fields.text}, std::pair{tags, &fields.label}}) {
    if (list != nullptr && !list->is_sequence()) return Failure{*key + " is " + type_of(*list) + ", not a list", ""};
  }
  if (tags != nullptr && tags->items().size() != words.items().size()) {
    return Failure{fields.label + " has " + runner::core::counted_large(std::ssize(tags->items()), "tag", "tags") +
                       ", and " + fields.text + " has " + std::to_string(words.items().size()),
                   "give each word a tag"};
  }
  std::string text;
  std::vector<std::uint32_t> begins;  // characters
  std::uint32_t characters = 0;
  for (const Node& word : words.items()) {
    if (!word.is_string()) {
      return Failure{fields.text + "[" + std::to_string(begins.size()) + "] is " + type_of(word) + ", not a word", ""};
    }
    if (!text.empty()) {
      text += ' ';
      ++characters;
    }
    begins.push_back(characters);
    text += word.as_string();
    characters += static_cast<std::uint32_t>(runner::core::count_code_points(word.as_string()));
  }
  std::vector<tokenizer::Offsets> offsets;
  auto sequence = encoded_whole(*tokenizer_, text, nullptr, max_length_, &offsets);
  if (!sequence) return sequence;
  std::vector<std::int32_t>& labels = sequence.value().labels;
  labels.assign(sequence.value().input.size(), static_cast<std::int32_t>(kPadTarget));
  std::vector<bool> has_tag(begins.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    // Byte-level tokenizers count the blank in front of a word to its token.
    const bool at_blank = std::binary_search(begins.begin() + 1, begins.end(), offsets[i].begin + 1);
    const std::uint32_t begin = offsets[i].begin + (at_blank ? 1 : 0);
    if (begin >= offsets[i].end) continue;  // added, or of nothing
    const auto behind = std::upper_bound(begins.begin(), begins.end(), begin);
    const std::size_t word = static_cast<std::size_t>(behind - begins.begin()) - 1;
    if (has_tag[word]) continue;
    has_tag[word] = true;
    if (tags == nullptr) {
      labels[i] = 0;  // says where the word begins
      continue;
    }
    const Node& tag = tags->items()[word];
    if (tag.is_integer() && tag.as_integer() == kPadTarget) continue;
    auto label = label_text(tag, kind_, fields.label + "[" + std::to_string(word) + "]");
    if (!label) return label.failure();
    labels[i] = static_cast<std::int32_t>(sequence.value().given.size());
    sequence.value().given.push_back(std::move(label.value()));
  }
  // What is cut away is told elsewhere.
  const bool is_whole = !max_length_ || std::ssize(sequence.value().input) < *max_length_;
  if (tags != nullptr && is_whole && std::find(has_tag.begin(), has_tag.end(), false) != has_tag.end()) {
    sequence.value().unread.push_back(fields.label + " of words without a token");
  }
  return sequence;
}

Result<Sequence> LabelledTextEncoder::operator()(const std::string& text, std::int64_t /*vocab_size*/) const {
  const Result<Node> parsed = runner::core::parse_json(text);
  if (!parsed) return parsed.failure();
  const Node& record = parsed.value();
  if (!record.is_mapping()) return Failure{"not an object", ""};
  const auto found = Fields::of(record, columns_, kind_, reads_labels_);
  if (!found) return found.failure();
  const Fields& fields = found.value();
  std::vector<std::string> read = {fields.text, fields.pair, fields.label};
  FieldUse all;
  all.add_all(record,
              {fields.text, fields.has_pair ? fields.pair : fields.text, reads_labels_ ? fields.label : fields.text});
  // Who names the label means no other one.
  if (!columns_.label.empty() || !reads_labels_) read.insert(read.end(), kLabels.begin(), kLabels.end());
  if (kind_ == LabelKind::kTags) {
    auto sequence = tagged(record, fields);
    if (!sequence) return sequence;
    for (std::string& field : unread_fields(record, read, false)) sequence.value().unread.push_back(std::move(field));
    sequence.value().fields = std::move(all);
    return sequence;
  }
  const auto first = text_of(record, fields.text);
  if (!first) return first.failure();
  std::optional<std::string> second;
  if (fields.has_pair) {
    auto pair = text_of(record, fields.pair);
    if (!pair) return pair.failure();
    second = std::move(pair.value());
  }
  auto sequence = encoded_whole(*tokenizer_, first.value(), second ? &*second : nullptr, max_length_);
  if (!sequence) return sequence;
  sequence.value().unread = unread_fields(record, read, false);
  sequence.value().fields = std::move(all);
  if (!reads_labels_) return sequence;
  const Node& label = *record.find(fields.label);
  auto given = label_texts(label, kind_, fields.label);
  if (!given) return given.failure();
  sequence.value().given = std::move(given.value());
  return sequence;
}

}  // namespace components::data
