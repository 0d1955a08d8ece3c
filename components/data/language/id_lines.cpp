#include "components/data/language/id_lines.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "components/data/block_location.h"
#include "components/data/csv_file.h"
#include "components/data/data.h"
#include "components/data/in_memory.h"
#include "components/data/language/id_rows.h"
#include "components/data/language/odd_roles.h"
#include "components/data/language/row_packer.h"
#include "components/data/language/skipped_records.h"
#include "components/data/language/tokenized_set.h"
#include "components/data/language/unread_fields.h"
#include "components/data/same_task.h"
#include "components/data/text_files.h"
#include "components/data/text_utils.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/platform/line_source.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"

// B: samples of the batch   T: ids of the longest one   D: its decoder ids   M: D where there are any, else T
// A sample is a row: one line, or several with `packing`.

namespace components::data {
namespace {

constexpr double kManyWithout = 0.1;  ///< of the records: it may be a mistake that nothing of them is learnt
constexpr std::int64_t kVocabularyMax = 16'777'216;  ///< of the key `vocab_size`

using Line = IdRows::Line;
using Row = IdRows::Row;

/// All that the files hold, and what of it is the set's.
struct Content : IdRows {
  std::int64_t id_max = 0, type_max = 0;  ///< of all lines, whatever the split
  std::int64_t whole = 0;                 ///< lines before the split
  std::int64_t cut = 0, bytes = 0;
  std::int64_t dropped = 0, skipped = 0;  ///< of the split
  std::string skipped_reasons;
};

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

void one_line_a_row(Content& content) {
  for (std::size_t i = 0; i < content.lines.size(); ++i) {
    content.rows.push_back({i, 1, content.lines[i].length, content.lines[i].outputs});
  }
}

/// Moves the lines of a row next to each other.
void pack(Content& content, std::int64_t row_length) {
  std::vector<Line> packed;
  RowPacker<Line> packer(row_length, [&](std::vector<Line>&& lines, std::int64_t length) {
    content.rows.push_back({packed.size(), lines.size(), length, length});
    packed.insert(packed.end(), lines.begin(), lines.end());
  });
  for (const Line& line : content.lines) packer.add(line, line.length);
  packer.flush();
  content.lines = std::move(packed);
}

class IdLines final : public TokenizedSet {
 public:
  IdLines(BatchSpec signature, Content content, const IdLinesOptions& options)
      : TokenizedSet(options.files, options.tokenizer),
        signature_(std::move(signature)),
        content_(std::move(content)),
        units_(options.units),
        fill_(options.fill) {
    fill_.left = fill_.left && !content_.has_pairs;
  }

  const BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(content_.rows.size()); }
  std::int64_t length_of(std::int64_t index) const override {
    return signature_.padded() ? std::max(row(index).length, row(index).outputs) : 0;
  }
  std::int64_t tokens_per_sample() const override { return signature_.padded() ? 0 : content_.rows.front().outputs; }
  std::int64_t predicted_positions(std::int64_t index) const override { return row(index).outputs; }

  void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const override {
    std::vector<const Row*> rows;
    for (const std::int64_t index : indices) rows.push_back(&row(index));
    content_.write(rows, signature_, fill_, batch);
  }

  double unigram_entropy() const override {
    if (content_.has_pairs) return std::numeric_limits<double>::quiet_NaN();  // the loss is of pairs
    std::call_once(counted_, [this] {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(signature_.at(kInput).vocab_size));
      for (const Line& one : content_.lines) {
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
    const Range range = lengths(content_.lines, &Line::length);
    return counted_large(static_cast<std::int64_t>(paths().size()), "file", "files") + ", " +
           runner::core::format_bytes(content_.bytes) + ", " +
           counted_large(static_cast<std::int64_t>(content_.lines.size()), "line", "lines") + " of " +
           (range.varies() ? with_commas(range.least) + " to " : "") + with_commas(range.most) + " " + units_ +
           (content_.cut > 0 ? " (" + with_commas(content_.cut) + " cut)" : "") + packed();
  }

  std::optional<Record> record_of(std::int64_t index) const override {
    const Line& first = content_.lines[row(index).first];
    return Record{"line", first.number, paths().size() > 1 ? paths()[first.file] : ""};
  }

  std::vector<Part> parts_of(std::int64_t index) const override {
    std::vector<Part> parts;
    std::int64_t begin = 0;
    for (const Line& one : content_.of(row(index))) {
      for (const std::int64_t length : {one.rejected_at, one.length - one.rejected_at}) {
        if (length == 0) continue;
        parts.push_back({begin, length, Record{"line", one.number, paths()[one.file]}, one.cut});
        begin += length;
      }
    }
    return parts;
  }

  Account account() const override {
    const auto used = static_cast<std::int64_t>(content_.lines.size());
    return {.records = used + content_.dropped + content_.skipped,
            .cut = content_.cut,
            .dropped = content_.dropped,
            .skipped = content_.skipped,
            .reasons = content_.skipped_reasons};
  }

  std::int64_t memory_bytes() const override {
    return static_cast<std::int64_t>(content_.values.size() * sizeof(std::int32_t) +
                                     content_.lines.size() * sizeof(Line) + content_.rows.size() * sizeof(Row));
  }

 private:
  const Row& row(std::int64_t index) const {
    RUNNER_ASSERT(index >= 0 && index < size(), "the sampler keeps to the data set");
    return content_.rows[static_cast<std::size_t>(index)];
  }

  /// ` in 12 rows, 97 % full`; nothing where each line is a row.
  std::string packed() const {
    if (content_.rows.size() == content_.lines.size()) return "";
    std::int64_t filled = 0;
    for (const Row& one : content_.rows) filled += one.length;
    return " in " + counted_large(size(), "row", "rows") + ", " +
           std::to_string(100 * filled / (size() * signature_.max_length())) + " % full";
  }

  BatchSpec signature_;
  Content content_;
  std::string units_;
  RowFill fill_;
  mutable std::once_flag counted_;
  mutable double entropy_ = 0;
};

/// Reads files line by line, in two passes: which lines a split takes is known when all are counted.
class Reader {
 public:
  Reader(const IdLinesOptions& options, const Inputs& inputs)
      : options_(options), inputs_(inputs), files_(options.files) {}

  /// Nothing when an error was reported. `vocab_size`: what ids are below.
  std::optional<Content> read(std::int64_t vocab_size) {
    for (std::size_t file = 0; file < files_.size(); ++file) {
      if (!each_line(file, [this](std::int64_t, const std::string&, RecordErrors&) { ++content_.whole; })) return {};
    }
    // An id takes two bytes of a file at least, and 4 here, in input and target.
    content_.bytes = std::exchange(bytes_, 0);
    if (!fits_in_memory(4.0 * static_cast<double>(content_.bytes), "path", options_.if_too_large, inputs_)) {
      return {};
    }
    const std::int64_t begin = PercentRange::boundary(content_.whole, options_.share.from);
    const std::int64_t end = PercentRange::boundary(content_.whole, options_.share.to);
    std::int64_t place = 0;
    const auto take = [&](std::size_t file, std::int64_t number, const std::string& text, RecordErrors& errors) {
      const bool is_mine = place >= begin && place < end;
      ++place;
      auto line = options_.parse(text, vocab_size);
      if (line && is_mine) {
        tell_roles(line.value(), file, number);
        unread_.add(line.value().unread, files_[file].path + ":" + std::to_string(number));
      }
      if (line) return add({.number = number, .file = file}, line.value(), is_mine, errors);
      if (options_.on_bad_record == BadRecord::kError) {
        return errors.add(number, line.failure().message, line.failure().hint);
      }
      if (is_mine) skipped_.add(files_[file].path, number, line.failure().message);
    };
    bool good = true;
    for (std::size_t file = 0; file < files_.size(); ++file) {
      good = each_line(file, [&](std::int64_t number, const std::string& text,
                                 RecordErrors& errors) { take(file, number, text, errors); }) &&
             good;
    }
    if (!good || !check_length()) return {};
    skipped_.tell(end - begin, inputs_);
    tell_too_long();
    unread_.tell(inputs_);
    content_.skipped = skipped_.count();
    content_.skipped_reasons = skipped_.reasons();
    if (content_.lines.empty()) {
      inputs_.diagnostics.error(
          split_or_path(),
          "data." + inputs_.name + " has no usable line, of " + counted_large(content_.whole, "line", "lines") +
              " that are not empty",
          options_.too_long == LongLine::kDrop ? "use too_long: cut, or more lines" : "use more lines");
      return {};
    }
    warn_of_targets();
    return std::move(content_);
  }

 private:
  runner::core::Location split_or_path() const {
    const runner::core::Node* split = inputs_.block.find("split");
    return location_of(inputs_.block, split != nullptr && !split->is_null() ? "split" : "path");
  }

  /// Calls `use` for each line that is not blank; false when something was wrong.
  template <typename Use>
  bool each_line(std::size_t file, Use use) {
    const std::string& path = files_[file].path;
    RecordErrors errors(inputs_.diagnostics, location_of(inputs_.block, "path"), path);
    runner::core::LineSource source(path);
    while (!errors.enough()) {
      const std::optional<std::string_view> line = source.next();
      if (!line) break;
      if (line->find_first_not_of(" \t\r") != std::string_view::npos) use(source.number(), std::string(*line), errors);
    }
    if (!source.problem().empty()) errors.add(source.problem_line(), source.problem());
    bytes_ += source.bytes();
    return !errors.any();
  }

  void add(Line line, IdsLine& ids, bool is_mine, RecordErrors& errors) {
    if (!has_all(line, ids, errors)) return;
    for (const auto* list : {&ids.input, &ids.labels, &ids.decoder}) {
      for (const std::int32_t id : *list) content_.id_max = std::max<std::int64_t>(content_.id_max, id);
    }
    for (const std::int32_t type : ids.types) content_.type_max = std::max<std::int64_t>(content_.type_max, type);
    if (!is_mine) return;
    const std::int64_t already_cut = content_.cut;
    if (!shorten(ids)) {
      ++content_.dropped;
      return;
    }
    line.cut = content_.cut > already_cut;
    content_.add(line, ids);
    line = content_.lines.back();
    const std::span<const std::int32_t> target(content_.target(line), static_cast<std::size_t>(line.outputs));
    const auto has_target = [](std::span<const std::int32_t> of) {
      return std::any_of(of.begin(), of.end(), [](std::int32_t id) { return id != kPadTarget; });
    };
    const auto rejected_at = static_cast<std::size_t>(line.rejected_at);  // 0: no pair
    const bool learns = rejected_at == 0
                            ? has_target(target)
                            : has_target(target.first(rejected_at)) && has_target(target.subspan(rejected_at));
    if (!learns && without_target_++ == 0) first_without_ = line;
  }

  void tell_roles(const IdsLine& line, std::size_t file, std::int64_t number) {
    for (const std::string& role : line.odd_roles) {
      if (!told_roles_.add(role)) continue;
      const auto text = ToldRoles::warning(files_[file].path + ":" + std::to_string(number), role);
      inputs_.diagnostics.warning(location_of(inputs_.block, "path"), text.message, text.hint);
    }
  }

  /// A training on nothing would end well, with a loss of 0.
  void warn_of_targets() {
    const auto lines = static_cast<std::int64_t>(content_.lines.size());
    const bool many =
        without_target_ > 0 && static_cast<double>(without_target_) >= kManyWithout * static_cast<double>(lines);
    if (content_.has_pairs && without_target_ > 0) return warn_of_prompts(lines);
    if (options_.tokenizer == nullptr || !many) return;
    inputs_.diagnostics.warning(
        split_or_path(),
        "data." + inputs_.name + ": of " + with_commas(without_target_) + " of " +
            counted_large(lines, "line", "lines") + " nothing is learnt, such as " + files_[first_without_.file].path +
            ":" + std::to_string(first_without_.number),
        "check that answers have the role assistant and are not cut away; `roux data show` shows what is learnt, and "
        "loss_on: all takes everything");
  }

  /// A pair of which nothing is left but its prompt has the same loss whatever is learnt.
  void warn_of_prompts(std::int64_t lines) {
    inputs_.diagnostics.warning(split_or_path(),
                                "data." + inputs_.name + ": of " + with_commas(without_target_) + " of " +
                                    counted_large(lines, "pair", "pairs") +
                                    " the prompt fills max_seq_len, and an answer is cut away, such as " +
                                    files_[first_without_.file].path + ":" + std::to_string(first_without_.number),
                                "raise max_seq_len, or use too_long: drop");
  }

  /// Each line has the lists that the first one has, as all of a batch need them.
  bool has_all(const Line& line, const IdsLine& ids, RecordErrors& errors) {
    const bool has_types = !ids.types.empty(), has_decoder = !ids.decoder.empty();
    if (!std::exchange(began_, true)) {
      content_.has_types = has_types;
      content_.has_decoder = has_decoder;
      content_.has_pairs = ids.rejected_at > 0;
    }
    if (content_.has_pairs != (ids.rejected_at > 0)) {
      errors.add(line.number,
                 std::string(content_.has_pairs ? "not a pair of chosen and rejected, as"
                                                : "a pair of chosen and rejected, not a text, as") +
                     " the first line of data." + inputs_.name + " is",
                 "put pairs into files of their own");
      return false;
    }
    const auto differs = [&](const char* key, bool has) {
      errors.add(line.number,
                 std::string(key) + (has ? " is here, but not in" : " is missing, but is in") +
                     " the first line of data." + inputs_.name,
                 std::string("give all lines ") + key + ", or none");
    };
    if (has_types != content_.has_types) differs(kTokenTypes, has_types);
    if (has_decoder != content_.has_decoder) differs(kDecoderInput, has_decoder);
    return has_types == content_.has_types && has_decoder == content_.has_decoder;
  }

  /// False when a line is too long to be used.
  bool shorten(IdsLine& ids) {
    if (!options_.max_seq_len || ids.longest() <= *options_.max_seq_len) return true;
    ++too_long_;
    longest_ = std::max(longest_, ids.longest());
    if (options_.too_long != LongLine::kCut) return false;
    ids.cut(*options_.max_seq_len, !options_.cut_left);
    ++content_.cut;
    return true;
  }

  /// What is left out is in no figure of the training. What is cut the set's description says.
  void tell_too_long() {
    if (options_.too_long != LongLine::kDrop || too_long_ == 0) return;
    inputs_.diagnostics.notice(
        location_of(inputs_.block, "too_long"),
        "data." + inputs_.name + ": " + with_commas(too_long_) + " of " +
            counted_large(too_long_ + static_cast<std::int64_t>(content_.lines.size()), "line", "lines") +
            (too_long_ == 1 ? " is" : " are") + " longer than max_seq_len " + std::to_string(*options_.max_seq_len) +
            " and left out, the longest has " + with_commas(longest_) + " " + options_.units);
  }

  bool check_length() {
    if (options_.too_long != LongLine::kError || too_long_ == 0) return true;
    inputs_.diagnostics.error(location_of(inputs_.block, "too_long"),
                              counted_large(too_long_, "line", "lines") + " of data." + inputs_.name + " " +
                                  (too_long_ == 1 ? "is" : "are") + " longer than max_seq_len " +
                                  std::to_string(*options_.max_seq_len) + ", the longest has " + with_commas(longest_) +
                                  " " + options_.units,
                              "raise max_seq_len, or use too_long: cut");
    return false;
  }

  ToldRoles told_roles_;
  UnreadFields unread_;
  const IdLinesOptions& options_;
  const Inputs& inputs_;
  const std::vector<TextFile>& files_;
  Content content_;
  SkippedRecords skipped_;
  bool began_ = false;
  std::int64_t bytes_ = 0;  // of the files, unpacked
  std::int64_t too_long_ = 0, longest_ = 0;
  std::int64_t without_target_ = 0;
  Line first_without_;
};

BatchSpec signature_of(const IdLinesOptions& options, const Inputs& inputs, const Content& content,
                       std::int64_t vocab_size) {
  const Range inputs_range = lengths(content.rows, &Row::length), outputs = lengths(content.rows, &Row::outputs);
  const BatchSpec* train = inputs.train != nullptr ? &inputs.train->signature() : nullptr;
  const auto any = [&content](bool Line::*is) {
    return std::any_of(content.lines.begin(), content.lines.end(), [is](const Line& line) { return line.*is; });
  };
  const auto is_padded = [&options](const Range& range) {
    return range.varies() || range.most % options.fill.multiple != 0;
  };
  const auto spec = [&](const char* name, std::int64_t vocabulary, const Range& range) {
    TensorSpec port{name, Dtype::kInt64, {kBatch, kTime}, false};
    port.vocab_size = vocabulary;
    const std::int64_t sequences = content.has_pairs ? 2 : 1;  // in a row
    port.max_length =
        rounded_up(std::max(range.most, sequences * options.max_seq_len.value_or(0)), options.fill.multiple);
    port.padded = is_padded(range);
    return port;
  };
  BatchSpec signature;
  signature.tensors = {spec(kInput, vocab_size, inputs_range), spec(kTarget, vocab_size, outputs)};
  signature.find(kTarget)->has_ignored = true;
  if (any(&Line::masked) || is_padded(inputs_range) || options.always_mask ||
      (train != nullptr && train->find(kAttentionMask) != nullptr)) {
    TensorSpec mask = spec(kAttentionMask, 0, inputs_range);
    mask.dtype = Dtype::kBool;
    mask.scattered =
        any(&Line::scattered) || (options.packing && any(&Line::masked)) || (options.fill.left && !content.has_pairs);
    signature.tensors.push_back(mask);
  }
  // A model that reads them of packed rows reads them of all sets.
  if (options.packing || content.has_pairs || (train != nullptr && train->find(kPositions) != nullptr)) {
    signature.tensors.push_back(spec(kPositions, 0, inputs_range));
  }
  if (content.has_pairs) {
    signature.tensors.push_back({kRejectedAt, Dtype::kInt64, {kBatch}, false});
    std::int64_t& positions = signature.find(kPositions)->max_length;  // of the longer sequence of a pair
    positions = std::max(options.max_seq_len.value_or(0), (positions + 1) / 2);
  }
  const TensorSpec* types = train != nullptr ? train->find(kTokenTypes) : nullptr;
  const std::int64_t type_count = types != nullptr ? types->vocab_size : content.type_max + 1;
  if (content.has_types) signature.tensors.push_back(spec(kTokenTypes, type_count, inputs_range));
  if (content.has_decoder) signature.tensors.push_back(spec(kDecoderInput, vocab_size, outputs));
  return signature;
}

/// What ids are below, as far as it is known before the files are read.
std::optional<std::int64_t> vocabulary(const IdLinesOptions& options, const Inputs& inputs) {
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
bool fits_types(const Content& content, const Inputs& inputs) {
  const TensorSpec* types = inputs.train != nullptr ? inputs.train->signature().find(kTokenTypes) : nullptr;
  if (types == nullptr || content.type_max < types->vocab_size) return true;
  inputs.diagnostics.error(location_of(inputs.block, "path"),
                           "data." + inputs.name + " has the token type " + std::to_string(content.type_max) +
                               ", and the largest of data.train is " + std::to_string(types->vocab_size - 1));
  return false;
}

/// False when an error was reported. Rows to predict are those of the file.
bool make_rows(Content& content, const IdLinesOptions& options, const Inputs& inputs) {
  if (!options.packing || inputs.new_rows) {
    one_line_a_row(content);
    return true;
  }
  if (content.has_pairs) {
    inputs.diagnostics.error(
        location_of(inputs.block, "packing"),
        "packing is true, but the lines of data." + inputs.name + " are pairs of chosen and rejected",
        "remove packing: a pair is a row of its own");
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

void IdLinesOptions::use(std::shared_ptr<const tokenizer::Tokenizer> its) {
  fill.id = its->fill_id().value_or(0);
  fill.left = its->settings().padding_side == tokenizer::Side::kLeft;
  cut_left = its->settings().truncation_side == tokenizer::Side::kLeft;
  vocab_size = its->id_limit();
  units = "tokens";
  tokenizer = std::move(its);
}

std::shared_ptr<Dataset> make_id_lines(const IdLinesOptions& options, const Inputs& inputs) {
  const std::optional<std::int64_t> known = vocabulary(options, inputs);
  if (!known) return nullptr;
  std::optional<Content> content = Reader(options, inputs).read(*known > 0 ? *known : kVocabularyMax);
  if (!content || !fits_types(*content, inputs) || !make_rows(*content, options, inputs)) return nullptr;
  BatchSpec signature = signature_of(options, inputs, *content, *known > 0 ? *known : content->id_max + 1);
  if (!fits_training_set(signature, inputs)) return nullptr;
  return std::make_shared<IdLines>(std::move(signature), std::move(*content), options);
}

}  // namespace components::data
