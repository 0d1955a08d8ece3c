#include "components/data/record/record_stream.h"

#include <algorithm>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/data/block_location.h"
#include "components/data/record/file_errors.h"
#include "components/data/record/record_counts.h"
#include "components/data/record/record_encoder.h"
#include "components/data/record/record_order.h"
#include "components/data/record/row_packer.h"
#include "components/data/record/sequence_rows.h"
#include "components/data/record/stream_mark.h"
#include "components/data/record/tokenized_set.h"
#include "components/data/stream.h"
#include "components/data/text_utils.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/packed/packed_file.h"
#include "runner/core/platform/machine.h"
#include "runner/core/units.h"

// A sample is a row: one record, or several with `packing`.

namespace components::data {
namespace {

using runner::core::Node;
using runner::core::RunError;

constexpr std::int64_t kFirstRecords = 8, kFirstFiles = 16;  ///< looked at before training
constexpr std::int64_t kMarkEvery = 256;                     ///< samples, at least
constexpr std::int64_t kMarksPerBuffer = 8;                  ///< so that a mark costs little for each sample

/// What all streams of a set have in common.
struct Recipe {
  Recipe(RecordSetOptions options, std::string set) : encoder(options, std::move(set), *options.vocab_size) {}

  RecordEncoder encoder;
  // By the first records:
  bool has_pairs = false;
  BatchSpec signature;
  RowFill fill;
  std::int64_t buffer_bytes = 0;  ///< of text, about

  const RecordSetOptions& options() const { return encoder.options(); }
  /// Whether each record is a sample, whatever is in it.
  bool one_to_one() const {
    return !options().packing && options().too_long != LongRecord::kDrop &&
           options().on_bad_record == BadRecord::kError;
  }

  /// RunError where the record is a pair and the first one is none, or the other way round.
  EncodedRecord encode(const RecordText& record) const {
    EncodedRecord encoded = encoder.encode(record);
    if (encoded.failure) return encoded;
    encoded.failure = encoder.problem_of_kind(encoded, has_pairs);
    if (encoded.failure) encoder.refuse(encoded);
    return encoded;
  }

  /// Tells of what a record holds and is not used as its author may think, once of a kind: how many there are is known
  /// when all are read. Called by all that encode. `pass`: over the files, from 0.
  void tell(const EncodedRecord& record, std::int64_t pass) const {
    const std::lock_guard lock(telling);
    auto [roles, fields] = notes.add(encoder, record, pass > 0);
    const auto warn = [this](const std::string& message, const std::string& hint) {
      runner::core::log_warning(encoder.set() + ": " + message + "; " + hint);
    };
    for (const runner::core::Failure& role : roles) warn(role.message, role.hint);
    std::erase_if(fields, [this](const std::string& field) { return told_before.contains(field); });
    if (fields.empty()) return;
    warn(UnreadFields::text_of_first(fields, encoder.where(record.place)), notes.unread().hint(fields));
  }

  /// Stream::unread().
  std::string unread_text() const {
    const std::lock_guard lock(telling);
    const std::string text = notes.unread().text();
    return text.empty() ? "" : "of " + counted_large(notes.records(), "record", "records") + " not read are " + text;
  }

  std::vector<FieldCount> field_counts() const {
    const std::lock_guard lock(telling);
    return notes.fields().list();
  }

  std::set<std::string> told_before;  ///< unread fields of the first records
  mutable std::mutex telling;
  mutable RecordNotes notes;  // guarded by telling
};

/// A row, encoded already or when it is used.
class RowSample final : public Stream::Sample {
 public:
  RowSample(std::shared_ptr<const Recipe> recipe, std::int64_t pass, RecordText record)
      : recipe_(std::move(recipe)), pass_(pass), record_(std::move(record)) {}
  RowSample(std::shared_ptr<const Recipe> recipe, std::int64_t pass, std::vector<EncodedRecord> records)
      : recipe_(std::move(recipe)), pass_(pass), encoded_(std::move(records)) {}

  std::int64_t pass() const override { return pass_; }

  std::vector<RecordPlace> places() const {
    if (record_) return {record_->place};
    std::vector<RecordPlace> places;
    for (const EncodedRecord& one : encoded_) places.push_back(one.place);
    return places;
  }

  std::vector<Part> parts() const override {
    std::vector<Part> parts;
    std::int64_t begin = 0;
    for (const EncodedRecord& one : encoded(false)) {
      const std::size_t of_rejected = one.sequence.input.size() - one.sequence.rejected_at;
      for (const std::size_t ids : {one.sequence.rejected_at, of_rejected}) {
        if (ids == 0) continue;
        const auto length = static_cast<std::int64_t>(ids);
        parts.push_back({begin, length, Record{"line", one.place.number, recipe_->encoder.path(one.place)}, one.cut});
        begin += length;
      }
    }
    return parts;
  }

  /// Adds the row and its sequences.
  void add_to(SequenceRows& rows) const {
    SequenceRows::Row row{rows.sequences.size()};
    for (const EncodedRecord& one : encoded(true)) {
      rows.add({.number = one.place.number, .file = one.place.file, .cut = one.cut}, one.sequence);
      ++row.count;
      row.length += rows.sequences.back().length;
      row.outputs += rows.sequences.back().outputs;
    }
    rows.rows.push_back(row);
  }

 private:
  std::vector<EncodedRecord> encoded(bool tells) const {
    if (!record_) return encoded_;
    const RecordEncoder& encoder = recipe_->encoder;
    EncodedRecord one = recipe_->encode(*record_);
    if (tells && !one.failure) recipe_->tell(one, pass_);
    if (encoder.fate_of(one) != RecordEncoder::Fate::kUsed) encoder.refuse(one);
    return {std::move(one)};
  }

  std::shared_ptr<const Recipe> recipe_;
  std::int64_t pass_;
  std::optional<RecordText> record_;
  std::vector<EncodedRecord> encoded_;
};

class RecordStream final : public Stream {
 public:
  RecordStream(std::shared_ptr<const Recipe> recipe, const StreamOptions& options)
      : recipe_(std::move(recipe)),
        order_({.files = recipe_->options().files,
                .set = recipe_->encoder.set(),
                .shuffle = options.shuffle,
                .buffer = recipe_->options().shuffle_buffer,
                .seed = options.seed,
                .bytes_max = runner::core::memory_limit() / 2,
                .format = recipe_->options().format}),
        packer_(*recipe_->options().max_seq_len,
                [this](std::vector<EncodedRecord>&& records, std::int64_t) { add_row(std::move(records)); }) {}

  std::int64_t position() const override { return position_; }
  Account account() const override { return account_of(ledger_.counts()); }
  std::optional<Account> first_pass() const override { return first_pass_; }
  std::string skipped_reasons() const override { return ledger_.skipped().reasons(); }
  std::string unread() const override { return recipe_->unread_text(); }

  SamplePointer next(bool wanted) override {
    while (ready_.empty()) read_on();
    SamplePointer sample = std::move(ready_.front());
    ready_.pop_front();
    if (recipe_->one_to_one()) ledger_.count_used();
    ++position_;
    return wanted ? sample : nullptr;
  }

  std::int64_t pass_of_next() override {
    while (ready_.empty() && samples_in_pass_ > 0) read_on();
    return ready_.empty() ? pass_ : ready_.front()->pass();  // a pass has a sample, or is an error
  }

  void leave_pass() override {
    ready_.clear();  // of the pass that is left, whether or not it was read to its end
    if (samples_in_pass_ == 0) return;
    packer_.restore({});
    samples_in_pass_ = 0;
    RecordOrder::State begin;
    begin.pass = ++pass_;
    order_.restore(begin);
  }

  void limit_buffer(std::int64_t bytes) override { order_.limit_buffer(bytes); }

  void collate(std::span<const SamplePointer> samples, TensorMap& batch) const override {
    SequenceRows rows;
    rows.has_pairs = recipe_->has_pairs;
    rows.labels = recipe_->options().labels;
    for (const SamplePointer& sample : samples) static_cast<const RowSample&>(*sample).add_to(rows);
    std::vector<const SequenceRows::Row*> all;
    for (const SequenceRows::Row& row : rows.rows) all.push_back(&row);
    rows.write(all, recipe_->signature, recipe_->fill, batch);
  }

  std::shared_ptr<const Mark> mark() const override {
    StreamMark mark{position_, pass_, samples_in_pass_, order_.state(), {}, files()};
    mark.counts = ledger_.counts();
    for (const auto& open : packer_.open()) {
      auto& row = mark.open_rows.emplace_back();
      for (const EncodedRecord& record : open.items) row.push_back(record.place);
    }
    for (const auto& row : ready_) mark.ready_rows.push_back(row->places());
    if (!ready_.empty()) mark.ready_pass = ready_.front()->pass();
    return std::make_shared<StreamMark>(std::move(mark));
  }

  std::int64_t mark_interval() const override {
    return std::max(kMarkEvery, recipe_->options().shuffle_buffer / kMarksPerBuffer);
  }

  std::shared_ptr<const Mark> mark_of(const Node& node) const override {
    return std::make_shared<StreamMark>(StreamMark::of(node, files(), recipe_->encoder.set()));
  }

  void go_to(const Mark& mark) override {
    const auto& place = static_cast<const StreamMark&>(mark);
    ready_.clear();
    order_.restore(place.order);
    for (const std::vector<RecordPlace>& row : place.ready_rows) add_again(row, place.ready_pass);
    std::list<RowPacker<EncodedRecord>::Open> open;
    for (const std::vector<RecordPlace>& row : place.open_rows) {
      auto& opened = open.emplace_back();
      opened.items = encoded_again(row);
      for (const EncodedRecord& one : opened.items) {
        opened.length += static_cast<std::int64_t>(one.sequence.input.size());
      }
    }
    packer_.restore(std::move(open));
    ledger_.set_counts(place.counts);
    first_pass_.reset();
    position_ = place.position;
    pass_ = place.pass;
    samples_in_pass_ = place.samples_in_pass;
  }

 private:
  std::shared_ptr<const std::vector<TextFile>> files() const { return {recipe_, &recipe_->options().files}; }

  static Account account_of(const RecordCounts& counts) {
    return {.records = counts.records, .dropped = counts.dropped, .skipped = counts.skipped};
  }

  void add_row(std::vector<EncodedRecord> records) {
    ready_.push_back(std::make_shared<RowSample>(recipe_, pass_, std::move(records)));
  }

  /// The row of a mark.
  void add_again(const std::vector<RecordPlace>& row, std::int64_t pass) {
    if (recipe_->one_to_one()) {
      ready_.push_back(std::make_shared<RowSample>(recipe_, pass, std::move(order_.read(row).front())));
    } else {
      ready_.push_back(std::make_shared<RowSample>(recipe_, pass, encoded_again(row)));
    }
  }

  std::vector<EncodedRecord> encoded_again(const std::vector<RecordPlace>& row) const {
    std::vector<EncodedRecord> all;
    for (const RecordText& record : order_.read(row)) {
      EncodedRecord encoded = recipe_->encode(record);
      const RecordEncoder::Fate fate = recipe_->encoder.fate_of(encoded);
      if (fate == RecordEncoder::Fate::kRefused) recipe_->encoder.refuse(encoded);
      if (fate == RecordEncoder::Fate::kUsed) all.push_back(std::move(encoded));  // it was used before
    }
    return all;
  }

  /// Reads a record, or ends a pass.
  void read_on() {
    if (std::optional<RecordText> record = order_.next()) {
      if (recipe_->one_to_one()) {
        ++samples_in_pass_;
        ready_.push_back(std::make_shared<RowSample>(recipe_, pass_, std::move(*record)));
        return;
      }
      EncodedRecord encoded = recipe_->encode(*record);
      if (!encoded.failure) recipe_->tell(encoded, pass_);
      const RecordEncoder::Fate fate = ledger_.take(recipe_->encoder, encoded);
      if (fate == RecordEncoder::Fate::kRefused) recipe_->encoder.refuse(encoded);
      if (!ledger_.new_reason().empty()) {
        runner::core::log_warning(recipe_->encoder.set() + ": skipped " + ledger_.new_reason() +
                                  "; further lines like it are only counted");
      }
      if (fate != RecordEncoder::Fate::kUsed) return;
      ++samples_in_pass_;
      const auto length = static_cast<std::int64_t>(encoded.sequence.input.size());
      if (recipe_->options().packing) {
        packer_.add(std::move(encoded), length);
      } else {
        std::vector<EncodedRecord> row;
        row.push_back(std::move(encoded));
        add_row(std::move(row));
      }
      return;
    }
    packer_.flush();
    end_pass();
  }

  void end_pass() {
    if (samples_in_pass_ == 0) {
      const auto failure = no_usable_record(recipe_->encoder.set(), static_cast<std::int64_t>(order_.files().size()),
                                            ledger_.counts(), ledger_.first_left_out());
      throw RunError(failure.message, failure.hint);
    }
    if (pass_ == 0) {
      first_pass_ = account_of(ledger_.counts());
      first_pass_->reasons = ledger_.skipped().reasons();
    }
    samples_in_pass_ = 0;
    ++pass_;
  }

  std::shared_ptr<const Recipe> recipe_;
  RecordOrder order_;
  std::deque<std::shared_ptr<const RowSample>> ready_;  // rows of one pass that were made and not yet returned
  RowPacker<EncodedRecord> packer_;
  RecordLedger ledger_;  // of all passes
  std::int64_t position_ = 0, pass_ = 0;
  std::int64_t samples_in_pass_ = 0;  // records that are used
  std::optional<Account> first_pass_;
};

class StreamedRecords final : public TokenizedSet {
 public:
  explicit StreamedRecords(std::shared_ptr<const Recipe> recipe)
      : TokenizedSet(recipe->options()), recipe_(std::move(recipe)) {}

  const BatchSpec& signature() const override { return recipe_->signature; }
  std::int64_t size() const override { return kEndless; }
  void fetch(std::span<const std::int64_t>, TensorMap&) const override {
    RUNNER_ASSERT(false, "a stream is not read by index");
  }
  std::unique_ptr<Stream> open_stream(const StreamOptions& options) const override {
    return std::make_unique<RecordStream>(recipe_, options);
  }
  std::string describe() const override {
    return counted_large(static_cast<std::int64_t>(paths().size()), "file", "files") + ", " +
           runner::core::format_bytes(total_bytes(recipe_->options().files)) + ", read as a stream" +
           (recipe_->options().packing ? ", packed" : "");
  }
  std::int64_t records() const override { return 0; }
  std::int64_t memory_bytes() const override { return recipe_->buffer_bytes; }
  std::vector<FieldCount> field_counts() const override { return recipe_->field_counts(); }

 private:
  std::shared_ptr<const Recipe> recipe_;
};

BatchSpec signature_of(const RecordSetOptions& options, const RowFill& fill, bool has_pairs) {
  const auto spec = [&](const char* name, std::int64_t vocabulary) {
    TensorSpec port{name, Dtype::kInt64, {kBatch, kTime}, false};
    port.vocab_size = vocabulary;
    port.max_length = rounded_up((has_pairs ? 2 : 1) * *options.max_seq_len, fill.multiple);
    port.padded = true;
    return port;
  };
  BatchSpec signature;
  signature.tensors = {spec(kInput, *options.vocab_size), spec(kTarget, *options.vocab_size)};
  signature.find(kTarget)->has_ignored = true;
  signature.find(kTarget)->in_place = are_in_place(options.labels);
  TensorSpec mask = spec(kAttentionMask, 0);
  mask.dtype = Dtype::kBool;
  mask.scattered = fill.left;
  signature.tensors.push_back(mask);
  if (options.packing || has_pairs) signature.tensors.push_back(spec(kPositions, 0));
  if (has_pairs) add_pair_tensors(signature, *options.max_seq_len);
  return signature;
}

/// Looks at the first records of a set: what they are, how large, and whether a wrong column is to be noticed before
/// training.
class FirstRecords {
 public:
  FirstRecords(Recipe& recipe, const Inputs& inputs) : recipe_(recipe), inputs_(inputs) {}

  /// False when an error was reported. A training on nothing would end well, with a loss of 0: a warning.
  bool look() {
    const std::vector<TextFile>& files = recipe_.options().files;
    const std::vector<TextFile> first = first_files(files);
    bool all = false;  // nothing lies behind what was looked at
    try {
      FileErrors errors(recipe_.encoder, inputs_);
      all = read(first, errors) && first.size() == files.size();
      if (errors.any()) return false;
    } catch (const RunError& error) {
      inputs_.diagnostics.error(location_of(inputs_.block, "path"), error.what(), error.hint());
      return false;
    }
    const RecordCounts& counts = ledger_.counts();
    if (all && counts.records == counts.dropped + counts.skipped) {
      const auto failure = no_usable_record(recipe_.encoder.set(), static_cast<std::int64_t>(files.size()), counts,
                                            ledger_.first_left_out());
      inputs_.diagnostics.error(location_of(inputs_.block, "path"), failure.message, failure.hint);
      return false;
    }
    settle_rows();
    if (recipe_.has_pairs && recipe_.options().packing) {
      const auto problem = recipe_.encoder.problem_of_packed_pairs();
      inputs_.diagnostics.error(location_of(inputs_.block, "packing"), problem.message, problem.hint);
      return false;
    }
    if (counts.records == 0) return true;
    warn();
    notes_.unread().tell(inputs_, "of the first " + counted_large(counts.records, "line", "lines") + " ");
    set_buffer_bytes();
    return true;
  }

 private:
  /// The beginning of the list, with at most kFirstFiles files that have bytes.
  static std::vector<TextFile> first_files(const std::vector<TextFile>& files) {
    std::vector<TextFile> first;
    std::int64_t opened = 0;
    for (const TextFile& file : files) {
      if (file.bytes > 0 && ++opened > kFirstFiles) break;
      first.push_back(file);
    }
    return first;
  }

  /// Whether the files were read to their end. Stops behind a file that has errors.
  bool read(const std::vector<TextFile>& files, FileErrors& errors) {
    RecordOrder order({.files = files, .set = recipe_.encoder.set(), .format = recipe_.encoder.options().format});
    while (ledger_.counts().records < kFirstRecords) {
      const std::optional<RecordText> record = order.next();
      looked_at_ = ledger_.counts();
      if (!record) return true;
      if (errors.any() && !errors.is_in(record->place)) return false;
      look_at(*record, errors.of(record->place));
    }
    looked_at_ = ledger_.counts();
    while (!knows_kind_ && !errors.any()) {
      const std::optional<RecordText> record = order.next();
      if (!record) return true;
      look_at(*record, errors.of(record->place));
    }
    return false;
  }

  void look_at(const RecordText& record, RecordErrors& errors) {
    bytes_ += static_cast<std::int64_t>(record.text.size());
    const EncodedRecord encoded = recipe_.encoder.encode(record);
    ledger_.take(recipe_.encoder, encoded);
    if (encoded.failure) {
      if (recipe_.options().on_bad_record == BadRecord::kError) {
        errors.add(record.place.number, encoded.failure->message, encoded.failure->hint);
      }
      return;
    }
    if (!std::exchange(knows_kind_, true)) recipe_.has_pairs = encoded.sequence.is_pair();
    if (const auto problem = recipe_.encoder.problem_of_kind(encoded, recipe_.has_pairs)) {
      return errors.add(record.place.number, problem->message, problem->hint);
    }
    for (std::string& field : notes_.add(recipe_.encoder, encoded).fields) recipe_.told_before.insert(std::move(field));
    if (recipe_.encoder.fate_of(encoded) == RecordEncoder::Fate::kDropped) return;
    const bool learns_it = learns(encoded.sequence.target(), encoded.sequence.rejected_at);
    ++(learns_it ? learnt_ : unlearnt_);
    if (!learns_it && first_unlearnt_.empty()) first_unlearnt_ = recipe_.encoder.where(record.place);
  }

  void settle_rows() {
    recipe_.fill = recipe_.options().fill;
    recipe_.fill.left = recipe_.fill.left && !recipe_.has_pairs;
    recipe_.signature = signature_of(recipe_.options(), recipe_.fill, recipe_.has_pairs);
  }

  void warn() const {
    const RecordCounts& counts = looked_at_;
    const std::string of = recipe_.encoder.set() + ": of the first " + counted_large(counts.records, "line", "lines");
    const auto warn = [&](const std::string& message, const char* hint) {
      inputs_.diagnostics.warning(location_of(inputs_.block, "path"), of + message, hint);
    };
    const std::int64_t left_out = counts.dropped + counts.skipped;
    if (left_out == counts.records) {
      warn(" none is used, such as " + ledger_.first_left_out(),
           counts.dropped > 0 ? "raise max_seq_len, or use too_long: cut"
                              : "remove on_bad_record: skip to see what is wrong");
    } else if (recipe_.has_pairs && unlearnt_ > 0) {
      warn(" " + with_commas(unlearnt_) + (unlearnt_ == 1 ? " is a pair" : " are pairs") +
               " with a prompt that fills max_seq_len, so that an answer is cut away, such as " + first_unlearnt_,
           "raise max_seq_len, or use too_long: drop");
    } else if (learnt_ == 0) {
      warn(
          " nothing is learnt",
          "check that answers have the role assistant and are not cut away; `roux data show` shows what is learnt, and "
          "loss_on: all takes everything");
    }
  }

  void set_buffer_bytes() {
    const std::vector<TextFile>& files = recipe_.options().files;
    recipe_.buffer_bytes = bytes_ / ledger_.counts().records * recipe_.options().shuffle_buffer;
    const auto is_packed = [](const TextFile& file) { return runner::core::is_packed(file.path); };
    if (std::any_of(files.begin(), files.end(), is_packed)) return;
    recipe_.buffer_bytes = std::min(recipe_.buffer_bytes, total_bytes(files));
  }

  Recipe& recipe_;
  const Inputs& inputs_;
  RecordLedger ledger_;
  RecordNotes notes_;
  RecordCounts looked_at_;   // of the first kFirstRecords; the kind may have taken more
  bool knows_kind_ = false;  // whether the set is one of pairs
  std::int64_t bytes_ = 0, learnt_ = 0, unlearnt_ = 0;
  std::string first_unlearnt_;
};

}  // namespace

std::shared_ptr<Dataset> make_record_stream(RecordSetOptions options, const Inputs& inputs) {
  RUNNER_ASSERT(options.max_seq_len && options.vocab_size, "a stream knows its tensors before it is read");
  const auto recipe = std::make_shared<Recipe>(std::move(options), "data." + inputs.name);
  if (!FirstRecords(*recipe, inputs).look()) return nullptr;
  return std::make_shared<StreamedRecords>(recipe);
}

}  // namespace components::data
