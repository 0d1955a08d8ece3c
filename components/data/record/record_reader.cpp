#include "components/data/record/record_reader.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/data/block_location.h"
#include "components/data/in_memory.h"
#include "components/data/label/label_table.h"
#include "components/data/record/file_errors.h"
#include "components/data/record/record_cache.h"
#include "components/data/record/record_order.h"
#include "components/data/text_utils.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/error.h"
#include "runner/core/platform/parallel.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

using Fate = RecordEncoder::Fate;
using Stored = SequenceRows::Stored;

constexpr double kManyWithout = 0.1;  ///< of the records: it may be a mistake that nothing of them is learnt
/// Of a thread, until what it has encoded is taken: starting it costs little beside that.
constexpr std::size_t kBatchBytes = std::size_t{512} << 10, kBatchRecords = 4096;
constexpr std::size_t kTogether = 16;  ///< records: a short one takes less time than it takes to fetch its number

/// Reads in two passes: which records a split takes is known when all are counted.
class Reader {
 public:
  Reader(const RecordEncoder& encoder, const Inputs& inputs)
      : encoder_(encoder),
        options_(encoder.options()),
        inputs_(inputs),
        threads_(static_cast<std::size_t>(std::max(1, at::get_num_threads()))) {
    read_.labels = options_.labels;
    if (are_targets(options_.labels) && !are_numbers(options_.labels)) {
      labels_.emplace(options_.labels == LabelKind::kScores ? LabelKind::kValues : options_.labels, inputs);
    }
  }

  std::optional<RecordsRead> read() {
    bool good = true;
    try {
      if (!count()) return {};
      FileErrors errors(encoder_, inputs_);
      RecordCache cache(encoder_, begin_, end_, read_.bytes);
      const auto take_again = [&](const EncodedRecord& record) {
        RecordErrors& of_file = errors.of(record.place);
        if (!of_file.enough()) take(record, true, of_file);
      };
      if (!cache.replay(take_again)) {
        take_all(errors, cache);
        cache.store();
      }
      good = !errors.any();
    } catch (const runner::core::RunError& error) {
      inputs_.diagnostics.error(location_of(inputs_.block, "path"), error.what(), error.hint());
      return {};
    }
    if (!good || !check_length()) return {};
    const RecordCounts& counts = ledger_.counts();
    ledger_.skipped().tell(end_ - begin_, inputs_);
    tell_too_long();
    notes_.unread().tell(inputs_);
    if (read_.sequences.empty()) {
      inputs_.diagnostics.error(
          split_or_path(),
          "data." + inputs_.name + " has no usable line, of " + counted_large(whole_, "line", "lines") +
              " that are not empty",
          options_.too_long == LongRecord::kDrop ? "use too_long: cut, or more lines" : "use more lines");
      return {};
    }
    if (labels_ && !take_labels()) return {};
    warn_of_targets();
    read_.account = {.records = counts.records,
                     .cut = ledger_.cut(),
                     .dropped = counts.dropped,
                     .skipped = counts.skipped,
                     .reasons = ledger_.skipped().reasons()};
    read_.fields = notes_.fields().list();
    return std::move(read_);
  }

 private:
  runner::core::Location split_or_path() const {
    const runner::core::Node* split = inputs_.block.find("split");
    return location_of(inputs_.block, split != nullptr && !split->is_null() ? "split" : "path");
  }

  /// False when an error was reported.
  bool count() {
    const RecordTotals totals = count_records(options_.files, options_.format);
    whole_ = totals.records;
    begin_ = options_.share.begin(whole_);
    end_ = options_.share.end(whole_);
    read_.bytes = totals.bytes;
    if (!takes_lines(options_.share, whole_, inputs_)) return false;
    // An id takes two bytes of a file at least, and 4 here, in input and target.
    return fits_in_memory(4.0 * static_cast<double>(totals.bytes), "path", options_.if_too_large, inputs_);
  }

  /// Reads some records at a time, encodes them on all threads, and takes them in their order.
  void take_all(FileErrors& errors, RecordCache& cache) {
    RecordOrder order({.files = options_.files, .set = encoder_.set(), .format = options_.format});
    // Ids that are written out share a vocabulary, which is that of all splits. The ids of texts are the tokenizer's.
    const bool reads_others = options_.tokenizer == nullptr;
    const std::int64_t end = reads_others ? whole_ : end_;
    std::vector<RecordText> batch;
    std::size_t bytes = 0;
    std::int64_t place = 0;
    const auto take_batch = [&] {
      const std::vector<EncodedRecord> encoded = encode(batch);
      std::int64_t at = place - static_cast<std::int64_t>(batch.size());
      batch.clear();
      bytes = 0;
      return std::all_of(encoded.begin(), encoded.end(), [&](const EncodedRecord& record) {
        RecordErrors& of_file = errors.of(record.place);
        if (!of_file.enough()) take(record, at >= begin_ && at < end_, of_file);
        cache.add(record);
        ++at;
        return !of_file.enough();
      });
    };
    while (place < end) {
      std::optional<RecordText> record = order.next();
      if (!record) break;  // the files are shorter than they were
      ++place;
      if (place <= begin_ && !reads_others) continue;
      bytes += record->text.size();
      batch.push_back(std::move(*record));
      if (bytes < kBatchBytes * threads_ && batch.size() < kBatchRecords * threads_) continue;
      if (!take_batch()) return;
    }
    take_batch();
  }

  std::vector<EncodedRecord> encode(const std::vector<RecordText>& batch) const {
    std::vector<EncodedRecord> encoded(batch.size());
    runner::core::in_parallel((batch.size() + kTogether - 1) / kTogether, threads_, [&](std::size_t part) {
      for (std::size_t i = part * kTogether; i < std::min(batch.size(), (part + 1) * kTogether); ++i) {
        encoded[i] = encoder_.encode(batch[i]);
      }
    });
    return encoded;
  }

  void take(const EncodedRecord& record, bool is_mine, RecordErrors& errors) {
    if (record.failure) {
      const bool is_error = encoder_.fate_of(record) == Fate::kRefused;
      if (is_error) return errors.add(record.place.number, record.failure->message, record.failure->hint);
      if (is_mine) ledger_.take(encoder_, record);
      return;
    }
    if (is_mine) tell_roles(notes_.add(encoder_, record).roles);
    if (!has_all(record, errors)) return;
    read_.id_max = std::max<std::int64_t>(read_.id_max, record.id_max);
    read_.type_max = std::max<std::int64_t>(read_.type_max, record.type_max);
    if (!is_mine || ledger_.take(encoder_, record) != Fate::kUsed) return;
    if (!labels_) return keep(record, record.sequence);
    Sequence labelled = record.sequence;
    const auto problem = labels_->take(labelled.given, labelled.labels);
    if (problem) return errors.add(record.place.number, problem->message, problem->hint);
    keep(record, labelled);
  }

  /// False, and an error, without a label, or where a head was trained for other classes of which some are these. With
  /// another number of them it begins at random. With the same its rows would be those of other classes, as by a name
  /// that is misspelt.
  bool accepts_labels() {
    if (inputs_.train == nullptr && !inputs_.new_rows && options_.labels == LabelKind::kClasses && !labels_->any()) {
      inputs_.diagnostics.error(split_or_path(), "no record of data." + inputs_.name + " has a label",
                                "name the field of the classes: columns: {label: FIELD}, or add records with labels");
      return false;
    }
    const ModelClasses& model = inputs_.model_classes;
    const std::vector<std::string>& own = labels_->names();
    if (inputs_.train != nullptr || model.is_new_head || model.names.empty() || own.empty()) return true;
    if (own == model.names) return true;
    const std::string what = "data." + inputs_.name + " has labels that the model does not have: its own are " +
                             labels_text(own) + ", and the model's " + labels_text(model.names);
    if (own.size() != model.names.size()) {
      inputs_.diagnostics.warning(split_or_path(), what, "");
      return true;
    }
    const bool shares = std::any_of(own.begin(), own.end(), [&](const std::string& name) {
      return std::find(model.names.begin(), model.names.end(), name) != model.names.end();
    });
    const std::string hint = "use the model's names; or a new head: init_from.exclude: \"head.*\"";
    shares ? inputs_.diagnostics.error(split_or_path(), what, hint)
           : inputs_.diagnostics.warning(split_or_path(), what, hint);
    return !shares;
  }

  /// Numbers are classes from 0 on, which stars from 1 to 5 are not.
  void tell_absent() {
    if (inputs_.train != nullptr || inputs_.new_rows) return;
    const std::vector<std::string> absent = labels_->absent();
    if (absent.empty()) return;
    inputs_.diagnostics.notice(split_or_path(),
                               "no record of data." + inputs_.name + " has the class " +
                                   runner::core::joined_first(absent, 5) + ", of the " +
                                   std::to_string(labels_->class_count()) + " from 0 to the largest",
                               "write the labels as numbers from 0, or as names, unless other data have that class");
  }

  /// Makes classes of the places of labels, and the target of all of them. False when an error was reported.
  bool take_labels() {
    labels_->finish();
    if (!accepts_labels()) return false;
    tell_absent();
    for (const Stored& stored : read_.sequences) {
      std::int32_t* const target = read_.values.data() + stored.at + stored.length;
      for (std::int64_t i = 0; i < stored.outputs; ++i) {
        if (target[i] != kPadTarget) target[i] = labels_->classes()[static_cast<std::size_t>(target[i])];
      }
    }
    read_.numbers = labels_->numbers();
    read_.numbers_each = labels_->numbers_each();
    read_.class_count = labels_->class_count();
    if (options_.labels != LabelKind::kTags) read_.label_target = labels_->target();
    read_.class_names = labels_->names();
    return true;
  }

  /// Each window of a question is a sequence.
  void keep_question(const EncodedRecord& record) {
    const Sequence& all = record.sequence;
    std::vector<std::int32_t> ends = all.begins;
    ends.push_back(static_cast<std::int32_t>(all.input.size()));
    const bool has_texts = !all.given.empty();
    if (has_texts) add_question(record);
    std::ptrdiff_t begin = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const auto end = static_cast<std::ptrdiff_t>(ends[i]);
      const auto part = [&](const std::vector<std::int32_t>& list) {
        return list.empty() ? list : std::vector<std::int32_t>(list.begin() + begin, list.begin() + end);
      };
      Sequence window;
      window.input = part(all.input);
      window.mask = part(all.mask);
      window.types = part(all.types);
      window.labels = {all.labels[2 * i], all.labels[2 * i + 1]};
      read_.add({.number = record.place.number, .file = record.place.file, .cut = record.cut}, window);
      if (has_texts) {
        Questions& questions = *read_.questions;
        questions.windows.push_back({questions.all.size() - 1, questions.offsets.size()});
        questions.offsets.insert(questions.offsets.end(), all.offsets.begin() + 2 * begin,
                                 all.offsets.begin() + 2 * end);
      }
      begin = end;
    }
  }

  void add_question(const EncodedRecord& record) {
    const std::vector<std::string>& given = record.sequence.given;
    if (read_.questions == nullptr) read_.questions = std::make_shared<Questions>();
    Questions& questions = *read_.questions;
    if (questions.contexts.empty() || questions.contexts.back() != given[1]) questions.contexts.push_back(given[1]);
    questions.all.push_back({given[0], questions.contexts.size() - 1, {given.begin() + 2, given.end()}});
    questions.some_have_none = questions.some_have_none || given.size() == 2;
  }

  /// `sequence`: of the record, its labels as the table has them.
  void keep(const EncodedRecord& record, const Sequence& sequence) {
    if (options_.labels == LabelKind::kSpans) return keep_question(record);
    read_.add(
        {.number = record.place.number, .file = record.place.file, .desirable = sequence.desirable, .cut = record.cut},
        sequence);
    if ((labels_ && options_.labels != LabelKind::kTags) || are_numbers(options_.labels) ||
        options_.labels == LabelKind::kTexts) {
      return;
    }
    const Stored& stored = read_.sequences.back();
    const std::span<const std::int32_t> target(read_.target(stored), static_cast<std::size_t>(stored.outputs));
    if (learns(target, static_cast<std::size_t>(stored.rejected_at))) return;
    if (without_target_++ == 0) first_without_ = encoder_.where(record.place);
  }

  void tell_roles(const std::vector<runner::core::Failure>& roles) {
    for (const runner::core::Failure& role : roles) {
      inputs_.diagnostics.warning(location_of(inputs_.block, "path"), role.message, role.hint);
    }
  }

  /// A training on nothing would end well, with a loss of 0.
  void warn_of_targets() {
    if (inputs_.new_rows && inputs_.labels == LabelKind::kRewards) return;
    const auto records = static_cast<std::int64_t>(read_.sequences.size());
    const bool many =
        without_target_ > 0 && static_cast<double>(without_target_) >= kManyWithout * static_cast<double>(records);
    if (read_.has_pairs && without_target_ > 0) return warn_of_prompts(records);
    if (options_.tokenizer == nullptr || !many) return;
    inputs_.diagnostics.warning(
        split_or_path(),
        "data." + inputs_.name + ": of " + with_commas(without_target_) + " of " +
            counted_large(records, "line", "lines") + " nothing is learnt, such as " + first_without_,
        "check that answers have the role assistant and are not cut away; `roux data show` shows what is learnt, and "
        "loss_on: all takes everything");
  }

  /// A pair of which nothing is left but its prompt has the same loss whatever is learnt.
  void warn_of_prompts(std::int64_t pairs) {
    inputs_.diagnostics.warning(split_or_path(),
                                "data." + inputs_.name + ": of " + with_commas(without_target_) + " of " +
                                    counted_large(pairs, "pair", "pairs") +
                                    " the prompt fills max_seq_len, and an answer is cut away, such as " +
                                    first_without_,
                                "raise max_seq_len, or use too_long: drop");
  }

  /// Each record has the lists that the first one has, as all of a batch need them.
  bool has_all(const EncodedRecord& record, RecordErrors& errors) {
    const Sequence& ids = record.sequence;
    const std::int64_t line = record.place.number,
                       texts = options_.labels == LabelKind::kSpans ? 1 : std::ssize(ids.begins) + 1;
    const bool has_types = !ids.types.empty(), has_decoder = !ids.decoder.empty();
    if (!std::exchange(began_, true)) {
      read_.has_types = has_types;
      read_.has_decoder = has_decoder;
      read_.has_pairs = ids.is_pair();
      read_.texts_each = texts;
    }
    if (texts != read_.texts_each) {
      errors.add(line,
                 counted_large(texts, "text", "texts") + ", and the first line of data." + inputs_.name + " has " +
                     std::to_string(read_.texts_each),
                 "give all lines as many texts, or name those that are read with columns");
      return false;
    }
    if (const auto problem = encoder_.problem_of_kind(record, read_.has_pairs)) {
      errors.add(line, problem->message, problem->hint);
      return false;
    }
    const auto differs = [&](const char* key, bool has) {
      errors.add(line,
                 std::string(key) + (has ? " is here, but not in" : " is missing, but is in") +
                     " the first line of data." + inputs_.name,
                 std::string("give all lines ") + key + ", or none");
    };
    if (has_types != read_.has_types) differs(kTokenTypes, has_types);
    if (has_decoder != read_.has_decoder) differs(kDecoderInput, has_decoder);
    return has_types == read_.has_types && has_decoder == read_.has_decoder;
  }

  /// What is left out is in no figure of the training. What is cut the set's description says.
  void tell_too_long() {
    const std::int64_t count = ledger_.too_long();
    if (options_.too_long != LongRecord::kDrop || count == 0) return;
    inputs_.diagnostics.notice(
        location_of(inputs_.block, "too_long"),
        "data." + inputs_.name + ": " + with_commas(count) + " of " +
            counted_large(count + static_cast<std::int64_t>(read_.sequences.size()), "line", "lines") +
            (count == 1 ? " is" : " are") + " longer than " + limits() + " and left out, the longest has " +
            with_commas(ledger_.longest()) + " " + options_.units);
  }

  std::string limits() const {
    const auto& of_target = options_.max_target_len;
    return "max_seq_len " + std::to_string(*options_.max_seq_len) +
           (of_target ? " or max_target_len " + std::to_string(*of_target) : "");
  }

  bool check_length() {
    const std::int64_t count = ledger_.too_long();
    if (options_.too_long != LongRecord::kError || count == 0) return true;
    inputs_.diagnostics.error(location_of(inputs_.block, "too_long"),
                              counted_large(count, "line", "lines") + " of data." + inputs_.name + " " +
                                  (count == 1 ? "is" : "are") + " longer than " + limits() + ", the longest has " +
                                  with_commas(ledger_.longest()) + " " + options_.units,
                              "raise max_seq_len, or use too_long: cut");
    return false;
  }

  const RecordEncoder& encoder_;
  const RecordSetOptions& options_;
  const Inputs& inputs_;
  std::size_t threads_;
  RecordsRead read_;
  RecordLedger ledger_;
  RecordNotes notes_;
  std::optional<LabelTable> labels_;
  std::int64_t whole_ = 0, begin_ = 0, end_ = 0;  // records of the files, and the range of the split
  bool began_ = false;
  std::int64_t without_target_ = 0;
  std::string first_without_;
};

}  // namespace

std::optional<RecordsRead> read_records(const RecordEncoder& encoder, const Inputs& inputs) {
  return Reader(encoder, inputs).read();
}

}  // namespace components::data
