#include "components/data/record/record_set.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "components/data/block_location.h"
#include "components/data/data.h"
#include "components/data/record/other_completions.h"
#include "components/data/record/record_encoder.h"
#include "components/data/record/record_reader.h"
#include "components/data/record/row_packer.h"
#include "components/data/record/sequence_rows.h"
#include "components/data/record/tokenized_set.h"
#include "components/data/same_task.h"
#include "components/data/text_utils.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/several_texts.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/units.h"

// B: samples of the batch   T: ids of the longest one   D: its decoder ids   M: D where there are any, else T
// A sample is a row: one record, or several with `packing`.

namespace components::data {
namespace {

constexpr std::int64_t kVocabularyMax = 16'777'216;  ///< of the key `vocab_size`

using Stored = SequenceRows::Stored;
using Row = SequenceRows::Row;

struct Range {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  void add(std::int64_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool varies() const { return least < most; }
};

template <typename Part>
Range lengths(const std::vector<Part>& parts, std::int64_t Part::*length) {
  Range range;
  for (const Part& part : parts) range.add(part.*length);
  return range;
}

void one_record_a_row(RecordsRead& content) {
  for (std::size_t i = 0; i < content.sequences.size(); ++i) {
    content.rows.push_back({i, 1, content.sequences[i].length, content.sequences[i].outputs});
  }
}

/// Moves the sequences of a row next to each other.
void pack(RecordsRead& content, std::int64_t row_length) {
  std::vector<Stored> packed;
  RowPacker<Stored> packer(row_length, [&](std::vector<Stored>&& sequences, std::int64_t length) {
    content.rows.push_back({packed.size(), sequences.size(), length, length});
    packed.insert(packed.end(), sequences.begin(), sequences.end());
  });
  for (const Stored& one : content.sequences) packer.add(one, one.length);
  packer.flush();
  content.sequences = std::move(packed);
}

/// Of records that have as many.
std::vector<std::string> text_names_of(std::int64_t texts) {
  if (texts == 1) return {"text"};
  std::vector<std::string> names = {"anchor", "positive", "negative"};
  names.resize(static_cast<std::size_t>(texts));
  return names;
}

class RecordSet final : public TokenizedSet {
 public:
  RecordSet(BatchSpec signature, RecordsRead content, const RecordSetOptions& options)
      : TokenizedSet(options),
        signature_(std::move(signature)),
        content_(std::move(content)),
        units_(options.units),
        fill_(options.fill) {
    fill_.left = fill_.left && !content_.has_pairs && !content_.has_decoder && !have_vectors(content_.labels) &&
                 !are_numbers(content_.labels);
  }

  const BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(content_.rows.size()); }
  std::int64_t length_of(std::int64_t index) const override {
    return signature_.padded() ? std::max(row(index).length, row(index).outputs) : 0;
  }
  std::int64_t tokens_per_sample() const override {
    if (signature_.padded()) return 0;
    return row(0).outputs > 0 && !are_numbers(content_.labels) ? row(0).outputs : row(0).length;
  }
  std::int64_t predicted_positions(std::int64_t index) const override {
    return content_.labels == LabelKind::kSpans ? row(index).length : row(index).outputs;
  }
  const Questions* questions() const override { return content_.questions.get(); }

  void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const override {
    std::vector<const Row*> rows;
    for (const std::int64_t index : indices) rows.push_back(&row(index));
    content_.write(rows, signature_, fill_, batch);
  }

  double unigram_entropy() const override {
    // The loss is of pairs, of labels or of vectors.
    if (content_.has_pairs || are_targets(content_.labels) || have_vectors(content_.labels))
      return std::numeric_limits<double>::quiet_NaN();
    std::call_once(counted_, [this] {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(signature_.at(kInput).vocab_size));
      for (const Stored& one : content_.sequences) {
        // Of what is to be predicted, which the loss is compared with.
        for (std::int64_t i = 0; i < one.outputs; ++i) {
          const std::int32_t id = content_.target(one)[i];
          if (id != kPadTarget) ++counts[static_cast<std::size_t>(id)];
        }
      }
      entropy_ = entropy_of(counts);
    });
    return entropy_;
  }

  std::string describe() const override {
    const Range range = lengths(content_.sequences, &Stored::length);
    return counted_large(static_cast<std::int64_t>(paths().size()), "file", "files") + ", " +
           runner::core::format_bytes(content_.bytes) + ", " +
           counted_large(static_cast<std::int64_t>(content_.sequences.size()),
                         content_.labels == LabelKind::kDesirable ? "labelled record"
                         : content_.labels == LabelKind::kSpans   ? "window"
                                                                  : "line",
                         content_.labels == LabelKind::kDesirable ? "labelled records"
                         : content_.labels == LabelKind::kSpans   ? "windows"
                                                                  : "lines") +
           " of " + (range.varies() ? with_commas(range.least) + " to " : "") + with_commas(range.most) + " " + units_ +
           (content_.account.cut > 0 ? " (" + with_commas(content_.account.cut) + " cut)" : "") + packed();
  }

  std::optional<Record> record_of(std::int64_t index) const override {
    const Stored& first = content_.sequences[row(index).first];
    return Record{"line", first.number, paths().size() > 1 ? paths()[first.file] : ""};
  }

  std::vector<Part> parts_of(std::int64_t index) const override {
    std::vector<Part> parts;
    std::int64_t begin = 0;
    const Row& its = row(index);
    for (std::size_t i = its.first; i < its.first + its.count; ++i) {
      const Stored& one = content_.sequences[i];
      for (const std::int64_t length : content_.parts_of(i)) {
        if (length == 0) continue;
        parts.push_back({begin, length, Record{"line", one.number, paths()[one.file]}, one.cut});
        begin += length;
      }
    }
    return parts;
  }

  Account account() const override { return content_.account; }
  std::vector<FieldCount> field_counts() const override { return content_.fields; }

  std::string class_name(std::int64_t number) const override {
    const auto& names = content_.class_names;
    const bool is_known = number >= 0 && number < std::ssize(names);
    return is_known ? names[static_cast<std::size_t>(number)] : Dataset::class_name(number);
  }
  std::vector<std::string> target_names() const override {
    if (content_.are_single) return {"reward"};
    if (have_vectors(content_.labels)) return text_names_of(content_.texts_each);
    return content_.labels == LabelKind::kClasses ? content_.class_names : std::vector<std::string>();
  }

  std::int64_t memory_bytes() const override {
    return static_cast<std::int64_t>(content_.values.size() * sizeof(std::int32_t) +
                                     content_.sequences.size() * sizeof(Stored) + content_.rows.size() * sizeof(Row));
  }

 private:
  const Row& row(std::int64_t index) const {
    RUNNER_ASSERT(index >= 0 && index < size(), "the sampler keeps to the data set");
    return content_.rows[static_cast<std::size_t>(index)];
  }

  /// ` in 12 rows, 97 % full`; nothing where each record is a row.
  std::string packed() const {
    if (content_.rows.size() == content_.sequences.size()) return "";
    std::int64_t filled = 0;
    for (const Row& one : content_.rows) filled += one.length;
    return " in " + counted_large(size(), "row", "rows") + ", " +
           std::to_string(100 * filled / (size() * signature_.max_length())) + " % full";
  }

  BatchSpec signature_;
  RecordsRead content_;
  std::string units_;
  RowFill fill_;
  mutable std::once_flag counted_;
  mutable double entropy_ = 0;
};

BatchSpec signature_of(const RecordSetOptions& options, const Inputs& inputs, const RecordsRead& content,
                       std::int64_t vocab_size) {
  const Range inputs_range = lengths(content.rows, &Row::length), outputs = lengths(content.rows, &Row::outputs);
  const BatchSpec* train = inputs.train != nullptr ? &inputs.train->signature() : nullptr;
  const auto any = [&content](bool Stored::*is) {
    return std::any_of(content.sequences.begin(), content.sequences.end(), [is](const Stored& one) { return one.*is; });
  };
  const auto is_padded = [&options](const Range& range) {
    return range.varies() || range.most % options.fill.multiple != 0;
  };
  const auto spec = [&](const char* name, std::int64_t vocabulary, const Range& range, bool of_target = false) {
    TensorSpec port{name, Dtype::kInt64, {kBatch, kTime}, false};
    port.vocab_size = vocabulary;
    const std::int64_t sequences = content.has_pairs && !content.are_single ? 2 : content.texts_each;  // in a row
    const auto& limit = of_target && options.max_target_len ? options.max_target_len : options.max_seq_len;
    port.max_length = rounded_up(std::max(range.most, sequences * limit.value_or(0)), options.fill.multiple);
    port.padded = is_padded(range);
    return port;
  };
  BatchSpec signature;
  TensorSpec target = spec(kTarget, vocab_size, outputs, true);
  target.has_ignored = true;
  target.in_place = are_in_place(content.labels);
  if (content.label_target) target = *content.label_target;
  if (are_numbers(content.labels)) {
    target = {kTarget, Dtype::kInt64, {kBatch}, false};
    if (content.labels == LabelKind::kSpans) target.shape.push_back(2);
    if (content.labels == LabelKind::kChoices) target.num_classes = content.texts_each;
  }
  if (content.labels == LabelKind::kTags) {
    target.vocab_size = 0;
    target.num_classes = content.class_count;
  }
  signature.tensors = {spec(kInput, vocab_size, inputs_range)};
  if (content.labels != LabelKind::kTexts) signature.tensors.push_back(target);
  if (any(&Stored::masked) || is_padded(inputs_range) || options.always_mask ||
      (train != nullptr && train->find(kAttentionMask) != nullptr)) {
    TensorSpec mask = spec(kAttentionMask, 0, inputs_range);
    mask.dtype = Dtype::kBool;
    mask.scattered = any(&Stored::scattered) || (options.packing && any(&Stored::masked)) ||
                     (options.fill.left && !content.has_pairs && !content.has_decoder);
    signature.tensors.push_back(mask);
  }
  // A model that reads them of packed rows reads them of all sets.
  if (options.packing || content.has_pairs || content.texts_each > 1 ||
      (train != nullptr && train->find(kPositions) != nullptr)) {
    signature.tensors.push_back(spec(kPositions, 0, inputs_range));
  }
  if (content.texts_each > 1 || (train != nullptr && train->find(kTextsAt) != nullptr)) {
    signature.tensors.push_back({kTextsAt, Dtype::kInt64, {kBatch, content.texts_each}, false});
    signature.find(kPositions)->max_length = std::max(options.max_seq_len.value_or(0), content.longest_text());
  }
  if (content.has_pairs) {
    add_pair_tensors(signature, options.max_seq_len.value_or(0), content.are_single);
    if (content.labels == LabelKind::kDesirable)
      signature.tensors.push_back({kDesirable, Dtype::kBool, {kBatch}, false});
  }
  const TensorSpec* types = train != nullptr ? train->find(kTokenTypes) : nullptr;
  const std::int64_t type_count = types != nullptr ? types->vocab_size : content.type_max + 1;
  if (content.has_types) signature.tensors.push_back(spec(kTokenTypes, type_count, inputs_range));
  if (content.has_decoder) signature.tensors.push_back(spec(kDecoderInput, vocab_size, outputs, true));
  return signature;
}

/// What ids are below, as far as it is known before the files are read.
std::optional<std::int64_t> vocabulary(const RecordSetOptions& options, const Inputs& inputs) {
  const TensorSpec* of_train = inputs.train != nullptr ? inputs.train->signature().find(kInput) : nullptr;
  if (of_train == nullptr || of_train->vocab_size == 0) return options.vocab_size.value_or(0);
  if (options.vocab_size && *options.vocab_size != of_train->vocab_size) {
    inputs.diagnostics.error(location_of(inputs.block, "vocab_size"),
                             "vocab_size of data." + inputs.name + " is " + std::to_string(*options.vocab_size) +
                                 ", and that of data.train " + std::to_string(of_train->vocab_size),
                             "leave it out: one model reads both");
    return std::nullopt;
  }
  return of_train->vocab_size;
}

/// Types of tokens that the training set does not have would be beyond the model's table.
bool fits_types(const RecordsRead& content, const Inputs& inputs) {
  const TensorSpec* types = inputs.train != nullptr ? inputs.train->signature().find(kTokenTypes) : nullptr;
  if (types == nullptr || content.type_max < types->vocab_size) return true;
  inputs.diagnostics.error(location_of(inputs.block, "path"),
                           "data." + inputs.name + " has the token type " + std::to_string(content.type_max) +
                               ", and the largest of data.train is " + std::to_string(types->vocab_size - 1));
  return false;
}

/// False when an error was reported. Rows to predict are those of the file.
bool make_rows(RecordsRead& content, const RecordEncoder& encoder, const Inputs& inputs) {
  const RecordSetOptions& options = encoder.options();
  if (inputs.labels == LabelKind::kRewards && inputs.new_rows && !content.has_pairs) content.take_as_pairs();
  if (options.labels == LabelKind::kDesirable) add_other_completions(content, options.max_seq_len, !options.cut_left);
  if (!options.packing || inputs.new_rows) {
    one_record_a_row(content);
    return true;
  }
  if (content.has_pairs) {
    const auto problem = encoder.problem_of_packed_pairs();
    inputs.diagnostics.error(location_of(inputs.block, "packing"), problem.message, problem.hint);
    return false;
  }
  if (content.has_decoder) {
    inputs.diagnostics.error(location_of(inputs.block, "packing"),
                             "packing is true, but the lines of data." + inputs.name + " have decoder_input_ids",
                             "remove packing: only ids of one sequence are packed");
    return false;
  }
  if (!options.max_seq_len) {
    inputs.diagnostics.error(location_of(inputs.block, "packing"), "packing needs max_seq_len, the length of a row",
                             "set max_seq_len to the model's context length");
    return false;
  }
  pack(content, *options.max_seq_len);
  return true;
}

}  // namespace

std::shared_ptr<Dataset> make_record_set(const RecordSetOptions& options, const Inputs& inputs) {
  const std::optional<std::int64_t> known = vocabulary(options, inputs);
  if (!known) return nullptr;
  const RecordEncoder encoder(options, "data." + inputs.name, *known > 0 ? *known : kVocabularyMax);
  std::optional<RecordsRead> content = read_records(encoder, inputs);
  if (!content || !fits_types(*content, inputs) || !make_rows(*content, encoder, inputs)) return nullptr;
  if (content->questions != nullptr && inputs.train != nullptr && inputs.train->questions() != nullptr) {
    content->questions->some_have_none = inputs.train->questions()->some_have_none;
  }
  BatchSpec signature = signature_of(options, inputs, *content, *known > 0 ? *known : content->id_max + 1);
  if (!fits_training_set(signature, inputs)) return nullptr;
  return std::make_shared<RecordSet>(std::move(signature), std::move(*content), options);
}

}  // namespace components::data
