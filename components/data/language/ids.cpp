#include <cstdint>
#include <string>
#include <utility>

#include "components/data/data.h"
#include "components/data/language/labelled_ids.h"
#include "components/data/record/record_set.h"
#include "components/data/record/sequence.h"
#include "generated/data/ids.h"
#include "runner/core/json.h"

namespace components::data::ids {
namespace {

using runner::core::Failure;
using runner::core::Result;

/// A line of ids of which a transform masks some: labels may leave out ids, and tell of no other one.
Result<Sequence> unmasked_ids(const std::string& line, std::int64_t vocab_size) {
  auto sequence = parse_sequence(line, vocab_size);
  if (!sequence) return sequence;
  const auto &ids = sequence.value().input, &labels = sequence.value().labels;
  if (!sequence.value().decoder.empty())
    return Failure{"decoder_input_ids is here, and the model reads input_ids alone", ""};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kPadTarget || labels[i] == ids[i]) continue;
    return Failure{"labels[" + std::to_string(i) + "] is " + std::to_string(labels[i]) + ", and the id there " +
                       std::to_string(ids[i]) + ": it is masked already",
                   "remove transforms, which mask ids, or labels"};
  }
  return sequence;
}

LongRecord long_record(TooLong word) {
  switch (word) {
    case TooLong::kCut: return LongRecord::kCut;
    case TooLong::kDrop: return LongRecord::kDrop;
    case TooLong::kError: break;
  }
  return LongRecord::kError;
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  RecordSetOptions options;
  options.files = find_text_files(config.path, config.exclude, FileKind::kRecords, inputs);
  if (options.files.empty()) return nullptr;
  const auto share = apply_split(config.split, config.split_by == SplitBy::kFiles, "lines", options.files, inputs);
  if (!share) return nullptr;
  options.share = *share;
  options.max_seq_len = config.max_seq_len;
  options.too_long = long_record(config.too_long);
  options.packing = config.packing;
  options.fill.multiple = config.pad_to_multiple_of;
  options.on_bad_record = config.on_bad_record == OnBadRecord::kSkip ? BadRecord::kSkip : BadRecord::kError;
  options.always_mask = config.attention_mask == AttentionMask::kAlways;
  options.vocab_size = config.vocab_size;
  options.format.arrays = true;
  const bool has_head = inputs.labels == LabelKind::kMasked || are_targets(inputs.labels);
  if (have_vectors(inputs.labels) || are_numbers(inputs.labels)) {
    options.labels = inputs.labels;
    options.parse = [kind = inputs.labels, needed = !inputs.new_rows](const std::string& line,
                                                                      std::int64_t vocab_size) {
      return ids_of_texts(line, vocab_size, kind, needed);
    };
  } else if (has_head) {
    options.labels = inputs.labels;
    options.parse = [kind = inputs.labels, needed = !inputs.new_rows](const std::string& line,
                                                                      std::int64_t vocab_size) {
      return labelled_ids(line, vocab_size, kind, needed);
    };
  } else if (inputs.labels == LabelKind::kWritten) {
    options.always_mask = true;
    options.parse = [ids = inputs.decoder](const std::string& line, std::int64_t vocab_size) -> Result<Sequence> {
      const auto record = runner::core::parse_json(line);
      return record ? sequence_of(record.value(), vocab_size, &ids) : record.failure();
    };
  } else if (inputs.labels == LabelKind::kUnmasked) {
    options.labels = inputs.labels;
    options.parse = unmasked_ids;
  } else {
    options.parse = [](const std::string& line, std::int64_t vocab_size) { return parse_sequence(line, vocab_size); };
  }
  return make_record_set(options, inputs);
}

}  // namespace components::data::ids
