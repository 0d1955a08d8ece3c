#include "components/data/language/id_stream.h"

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
#include "components/data/csv_file.h"
#include "components/data/language/id_rows.h"
#include "components/data/language/odd_roles.h"
#include "components/data/language/record_counts.h"
#include "components/data/language/record_order.h"
#include "components/data/language/row_packer.h"
#include "components/data/language/skipped_records.h"
#include "components/data/language/stream_mark.h"
#include "components/data/language/tokenized_set.h"
#include "components/data/language/unread_fields.h"
#include "components/data/stream.h"
#include "components/data/text_utils.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/line_source.h"
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

/// A record as ids.
struct Encoded {
  RecordPlace place;
  IdsLine ids;
  bool cut = false;
};

/// What all streams of a set have in common.
struct Recipe {
  IdLinesOptions options;
  BatchSpec signature;
  std::string set;                ///< `data.train`
  std::int64_t buffer_bytes = 0;  ///< of text, about: by the first records

  const std::string& path(const RecordPlace& place) const { return options.files[place.file].path; }
  /// Whether each record is a sample, whatever is in it.
  bool one_to_one() const {
    return !options.packing && options.too_long != LongLine::kDrop && options.on_bad_record == BadRecord::kError;
  }

  std::string text(const RecordPlace& place, const std::string& message) const {
    return path(place) + ":" + std::to_string(place.number) + ": " + message;
  }
  std::string longer(std::int64_t length) const {
    return with_commas(length) + " " + options.units + ", longer than max_seq_len " +
           std::to_string(*options.max_seq_len);
  }

  [[noreturn]] void fail(const RecordPlace& place, const runner::core::Failure& failure) const {
    throw RunError(text(place, failure.message), failure.hint);
  }

  /// Nothing: too long, and dropped. RunError when that is an error.
  std::optional<Encoded> shorten(const RecordPlace& place, IdsLine ids) const {
    Encoded encoded{place, std::move(ids)};
    const std::int64_t length = encoded.ids.longest(), longest = *options.max_seq_len;
    if (length <= longest) return encoded;
    if (options.too_long == LongLine::kError) {
      fail(place, {longer(length), "raise max_seq_len, or use too_long: cut"});
    }
    if (options.too_long == LongLine::kDrop) return std::nullopt;
    encoded.ids.cut(longest, !options.cut_left);
    encoded.cut = true;
    return encoded;
  }

  runner::core::Result<IdsLine> parse(const RecordText& record) const {
    return options.parse(record.text, *options.vocab_size);
  }

  /// What a record holds that is not used as its author may think, once of a kind: how many there are is known when all
  /// are read. Called by all that encode.
  void tell(const RecordPlace& place, const IdsLine& ids) const {
    const std::lock_guard lock(telling);
    ++encoded;
    if (ids.odd_roles.empty() && ids.unread.empty()) return;
    const std::string where = path(place) + ":" + std::to_string(place.number);
    for (const std::string& role : ids.odd_roles) {
      if (!told_roles.add(role)) continue;
      const auto text = ToldRoles::warning(where, role);
      runner::core::log_warning(set + ": " + text.message + "; " + text.hint);
    }
    std::vector<std::string> first = unread.add(ids.unread, where);
    std::erase_if(first, [this](const std::string& field) { return told_before.contains(field); });
    if (first.empty()) return;
    runner::core::log_warning(set + ": " + UnreadFields::text_of_first(first, where) + "; " + UnreadFields::hint());
  }

  /// Stream::unread().
  std::string unread_text() const {
    const std::lock_guard lock(telling);
    const std::string text = unread.text();
    return text.empty() ? "" : "of " + counted_large(encoded, "record", "records") + " not read are " + text;
  }

  std::set<std::string> told_before;  ///< unread fields of the first records
  mutable std::mutex telling;
  mutable std::int64_t encoded = 0;  // guarded by telling, as all below
  mutable ToldRoles told_roles;
  mutable UnreadFields unread;
};

/// A row, encoded already or when it is used.
class RowSample final : public Stream::Sample {
 public:
  RowSample(std::shared_ptr<const Recipe> recipe, std::int64_t pass, RecordText record)
      : recipe_(std::move(recipe)), pass_(pass), record_(std::move(record)) {}
  RowSample(std::shared_ptr<const Recipe> recipe, std::int64_t pass, std::vector<Encoded> records)
      : recipe_(std::move(recipe)), pass_(pass), encoded_(std::move(records)) {}

  std::int64_t pass() const override { return pass_; }

  std::vector<Part> parts() const override {
    std::vector<Part> parts;
    std::int64_t begin = 0;
    for (const Encoded& one : encoded(false)) {
      const auto length = static_cast<std::int64_t>(one.ids.input.size());
      parts.push_back({begin, length, Record{"line", one.place.number, recipe_->path(one.place)}, one.cut});
      begin += length;
    }
    return parts;
  }

  /// Adds the row and its lines.
  void add_to(IdRows& rows) const {
    IdRows::Row row{rows.lines.size()};
    for (const Encoded& one : encoded(true)) {
      rows.add({.number = one.place.number, .file = one.place.file, .cut = one.cut}, one.ids);
      ++row.count;
      row.length += rows.lines.back().length;
      row.outputs += rows.lines.back().outputs;
    }
    rows.rows.push_back(row);
  }

 private:
  std::vector<Encoded> encoded(bool tells) const {
    if (!record_) return encoded_;
    auto ids = recipe_->parse(*record_);
    if (!ids) recipe_->fail(record_->place, ids.failure());
    if (tells) recipe_->tell(record_->place, ids.value());
    return {recipe_->shorten(record_->place, std::move(ids).value()).value()};
  }

  std::shared_ptr<const Recipe> recipe_;
  std::int64_t pass_;
  std::optional<RecordText> record_;
  std::vector<Encoded> encoded_;
};

class IdStream final : public Stream {
 public:
  IdStream(std::shared_ptr<const Recipe> recipe, const StreamOptions& options)
      : recipe_(std::move(recipe)),
        order_({.files = recipe_->options.files,
                .set = recipe_->set,
                .shuffle = options.shuffle,
                .buffer = recipe_->options.shuffle_buffer,
                .seed = options.seed,
                .bytes_max = runner::core::memory_limit() / 2}),
        packer_(*recipe_->options.max_seq_len,
                [this](std::vector<Encoded>&& records, std::int64_t) { ready_.push_back(std::move(records)); }) {}

  std::int64_t position() const override { return position_; }
  Account account() const override { return account_of(counts_); }
  std::optional<Account> first_pass() const override { return first_pass_; }
  std::string skipped_reasons() const override { return skipped_.reasons(); }
  std::string unread() const override { return recipe_->unread_text(); }

  SamplePointer next(bool wanted) override {
    SamplePointer sample;
    if (recipe_->one_to_one()) {
      RecordText record = next_record();
      if (wanted) sample = std::make_shared<RowSample>(recipe_, pass_, std::move(record));
    } else {
      while (ready_.empty()) read_on();
      if (wanted) sample = std::make_shared<RowSample>(recipe_, ready_pass_, std::move(ready_.front()));
      ready_.pop_front();
    }
    ++position_;
    return sample;
  }

  void collate(std::span<const SamplePointer> samples, TensorMap& batch) const override {
    IdRows rows;
    for (const SamplePointer& sample : samples) static_cast<const RowSample&>(*sample).add_to(rows);
    std::vector<const IdRows::Row*> all;
    for (const IdRows::Row& row : rows.rows) all.push_back(&row);
    rows.write(all, recipe_->signature, recipe_->options.fill, batch);
  }

  std::shared_ptr<const Mark> mark() const override {
    if (!ready_.empty()) return nullptr;
    StreamMark mark{position_, pass_, samples_in_pass_, order_.state(), {}, files()};
    mark.counts = counts_;
    for (const auto& open : packer_.open()) {
      auto& row = mark.open_rows.emplace_back();
      for (const Encoded& record : open.items) row.push_back(record.place);
    }
    return std::make_shared<StreamMark>(std::move(mark));
  }

  std::int64_t mark_interval() const override {
    return std::max(kMarkEvery, recipe_->options.shuffle_buffer / kMarksPerBuffer);
  }

  std::shared_ptr<const Mark> mark_of(const Node& node) const override {
    return std::make_shared<StreamMark>(StreamMark::of(node, files(), recipe_->set));
  }

  void go_to(const Mark& mark) override {
    const auto& place = static_cast<const StreamMark&>(mark);
    ready_.clear();
    order_.restore(place.order);
    std::list<RowPacker<Encoded>::Open> open;
    for (const std::vector<RecordPlace>& row : place.open_rows) {
      auto& opened = open.emplace_back();
      for (const RecordText& record : order_.read(row)) {
        std::optional<Encoded> encoded = encode(record, false);
        if (!encoded) continue;  // it was encoded before
        opened.length += static_cast<std::int64_t>(encoded->ids.input.size());
        opened.items.push_back(std::move(*encoded));
      }
    }
    packer_.restore(std::move(open));
    counts_ = place.counts;
    first_pass_.reset();
    position_ = place.position;
    pass_ = place.pass;
    samples_in_pass_ = place.samples_in_pass;
  }

 private:
  std::shared_ptr<const std::vector<TextFile>> files() const { return {recipe_, &recipe_->options.files}; }

  static Account account_of(const RecordCounts& counts) {
    return {.records = counts.records, .dropped = counts.dropped, .skipped = counts.skipped};
  }

  /// Where each record is a sample.
  RecordText next_record() {
    for (;;) {
      if (std::optional<RecordText> record = order_.next()) {
        ++samples_in_pass_;
        ++counts_.records;
        return std::move(*record);
      }
      end_pass();
    }
  }

  /// Reads a record, or ends a pass.
  void read_on() {
    ready_pass_ = pass_;
    if (const std::optional<RecordText> record = order_.next()) {
      ++counts_.records;
      std::optional<Encoded> encoded = encode(*record);
      if (!encoded) return;
      ++samples_in_pass_;
      const auto length = static_cast<std::int64_t>(encoded->ids.input.size());
      if (recipe_->options.packing) {
        packer_.add(std::move(*encoded), length);
      } else {
        ready_.push_back({std::move(*encoded)});
      }
      return;
    }
    packer_.flush();
    end_pass();
  }

  void end_pass() {
    if (samples_in_pass_ == 0) {
      const auto failure =
          no_usable_record(recipe_->set, static_cast<std::int64_t>(order_.files().size()), counts_, first_left_out_);
      throw RunError(failure.message, failure.hint);
    }
    if (pass_ == 0) {
      first_pass_ = account_of(counts_);
      first_pass_->reasons = skipped_.reasons();
    }
    samples_in_pass_ = 0;
    ++pass_;
  }

  /// Nothing when the record is left out, and counted as such.
  std::optional<Encoded> encode(const RecordText& record, bool tells = true) {
    auto ids = recipe_->parse(record);
    if (ids) {
      if (tells) recipe_->tell(record.place, ids.value());
      const std::int64_t length = ids.value().longest();
      std::optional<Encoded> encoded = recipe_->shorten(record.place, std::move(ids).value());
      if (encoded) return encoded;
      ++counts_.dropped;
      if (first_left_out_.empty()) first_left_out_ = recipe_->text(record.place, recipe_->longer(length));
      return std::nullopt;
    }
    const auto& failure = ids.failure();
    if (recipe_->options.on_bad_record == BadRecord::kError) recipe_->fail(record.place, failure);
    ++counts_.skipped;
    const std::string text = recipe_->text(record.place, failure.message);
    if (first_left_out_.empty()) first_left_out_ = text;
    if (skipped_.add(recipe_->path(record.place), record.place.number, failure.message)) {
      runner::core::log_warning(recipe_->set + ": skipped " + text + "; further lines like it are only counted");
    }
    return std::nullopt;
  }

  std::shared_ptr<const Recipe> recipe_;
  RecordOrder order_;
  std::deque<std::vector<Encoded>> ready_;  // rows that were made and not yet returned
  RowPacker<Encoded> packer_;
  SkippedRecords skipped_;
  std::int64_t position_ = 0, pass_ = 0, ready_pass_ = 0;
  std::int64_t samples_in_pass_ = 0;  // records that are used
  RecordCounts counts_;               // of all passes
  std::optional<Account> first_pass_;
  std::string first_left_out_;  // with its place and why
};

class StreamedLines final : public TokenizedSet {
 public:
  explicit StreamedLines(std::shared_ptr<const Recipe> recipe)
      : TokenizedSet(recipe->options.files, recipe->options.tokenizer), recipe_(std::move(recipe)) {}

  const BatchSpec& signature() const override { return recipe_->signature; }
  std::int64_t size() const override { return kEndless; }
  void fetch(std::span<const std::int64_t>, TensorMap&) const override {
    RUNNER_ASSERT(false, "a stream is not read by index");
  }
  std::unique_ptr<Stream> open_stream(const StreamOptions& options) const override {
    return std::make_unique<IdStream>(recipe_, options);
  }
  std::string describe() const override {
    return counted_large(static_cast<std::int64_t>(paths().size()), "file", "files") + ", " +
           runner::core::format_bytes(total_bytes(recipe_->options.files)) + ", read as a stream" +
           (recipe_->options.packing ? ", packed" : "");
  }
  std::int64_t records() const override { return 0; }
  std::int64_t memory_bytes() const override { return recipe_->buffer_bytes; }

 private:
  std::shared_ptr<const Recipe> recipe_;
};

bool has_target(const IdsLine& line) {
  const std::vector<std::int32_t> target = line.target();
  return std::any_of(target.begin(), target.end(), [](std::int32_t id) { return id != kPadTarget; });
}

BatchSpec signature_of(const IdLinesOptions& options) {
  const auto spec = [&options](const char* name, std::int64_t vocabulary) {
    TensorSpec port{name, Dtype::kInt64, {kBatch, kTime}, false};
    port.vocab_size = vocabulary;
    port.max_length = rounded_up(*options.max_seq_len, options.fill.multiple);
    port.padded = true;
    return port;
  };
  BatchSpec signature;
  signature.tensors = {spec(kInput, *options.vocab_size), spec(kTarget, *options.vocab_size)};
  signature.find(kTarget)->has_ignored = true;
  TensorSpec mask = spec(kAttentionMask, 0);
  mask.dtype = Dtype::kBool;
  mask.scattered = options.fill.left;
  signature.tensors.push_back(mask);
  if (options.packing) signature.tensors.push_back(spec(kPositions, 0));
  return signature;
}

/// Looks at the first records of a set, so that a wrong column is noticed before training, and at their size.
class FirstRecords {
 public:
  FirstRecords(Recipe& recipe, const Inputs& inputs) : recipe_(recipe), inputs_(inputs) {}

  /// False when an error was reported. A training on nothing would end well, with a loss of 0: a warning.
  bool look() {
    std::int64_t opened = 0;
    bool all = true;  // nothing lies behind what was looked at
    for (const TextFile& file : recipe_.options.files) {
      if (file.bytes == 0) continue;
      if (++opened > kFirstFiles || counts_.records >= kFirstRecords) {
        all = false;
        break;
      }
      RecordErrors errors(inputs_.diagnostics, location_of(inputs_.block, "path"), file.path);
      runner::core::LineSource source(file.path);
      all = read(source, file.path, errors) && all;
      if (errors.any()) return false;
    }
    if (all && counts_.records == counts_.dropped + counts_.skipped) {
      const auto failure = no_usable_record(recipe_.set, static_cast<std::int64_t>(recipe_.options.files.size()),
                                            counts_, first_left_out_);
      inputs_.diagnostics.error(location_of(inputs_.block, "path"), failure.message, failure.hint);
      return false;
    }
    if (counts_.records == 0) return true;
    warn();
    unread_.tell(inputs_, "of the first " + counted_large(counts_.records, "line", "lines") + " ");
    set_buffer_bytes();
    return true;
  }

 private:
  /// Whether the file was read to its end.
  bool read(runner::core::LineSource& source, const std::string& path, RecordErrors& errors) {
    bool ended = false;
    while (!ended && counts_.records < kFirstRecords) {
      const std::optional<std::string_view> line = source.next();
      ended = !line;
      if (ended || line->find_first_not_of(" \t\r") == std::string_view::npos) continue;
      look_at(std::string(*line), source.number(), path, errors);
    }
    if (!source.problem().empty()) errors.add(source.problem_line(), source.problem());
    return ended;
  }

  void look_at(const std::string& line, std::int64_t number, const std::string& path, RecordErrors& errors) {
    const IdLinesOptions& options = recipe_.options;
    ++counts_.records;
    bytes_ += static_cast<std::int64_t>(line.size());
    auto ids = options.parse(line, *options.vocab_size);
    const auto leave_out = [&](std::int64_t& count, const std::string& why) {
      ++count;
      if (first_left_out_.empty()) first_left_out_ = path + ":" + std::to_string(number) + ": " + why;
    };
    if (!ids) {
      if (options.on_bad_record == BadRecord::kError)
        return errors.add(number, ids.failure().message, ids.failure().hint);
      return leave_out(counts_.skipped, ids.failure().message);
    }
    for (std::string& field : unread_.add(ids.value().unread, path + ":" + std::to_string(number)))
      recipe_.told_before.insert(std::move(field));
    const std::int64_t length = ids.value().longest();
    if (options.too_long == LongLine::kDrop && length > *options.max_seq_len) {
      return leave_out(counts_.dropped, recipe_.longer(length));
    }
    if (options.too_long == LongLine::kCut) ids.value().cut(*options.max_seq_len, !options.cut_left);
    if (has_target(ids.value())) ++learnt_;
  }

  void warn() const {
    const std::string of = recipe_.set + ": of the first " + counted_large(counts_.records, "line", "lines");
    const auto warn = [&](const std::string& message, const char* hint) {
      inputs_.diagnostics.warning(location_of(inputs_.block, "path"), of + message, hint);
    };
    const std::int64_t left_out = counts_.dropped + counts_.skipped;
    if (left_out == counts_.records) {
      warn(" none is used, such as " + first_left_out_, counts_.dropped > 0
                                                            ? "raise max_seq_len, or use too_long: cut"
                                                            : "remove on_bad_record: skip to see what is wrong");
    } else if (learnt_ == 0) {
      warn(
          " nothing is learnt",
          "check that answers have the role assistant and are not cut away; `roux data show` shows what is learnt, and "
          "loss_on: all takes everything");
    }
  }

  void set_buffer_bytes() {
    recipe_.buffer_bytes = bytes_ / counts_.records * recipe_.options.shuffle_buffer;
    const auto is_packed = [](const TextFile& file) { return file.path.ends_with(".gz"); };
    if (std::any_of(recipe_.options.files.begin(), recipe_.options.files.end(), is_packed)) return;
    recipe_.buffer_bytes = std::min(recipe_.buffer_bytes, total_bytes(recipe_.options.files));
  }

  Recipe& recipe_;
  const Inputs& inputs_;
  RecordCounts counts_;
  UnreadFields unread_;
  std::int64_t bytes_ = 0, learnt_ = 0;
  std::string first_left_out_;
};

}  // namespace

std::shared_ptr<Dataset> make_id_stream(IdLinesOptions options, const Inputs& inputs) {
  RUNNER_ASSERT(options.max_seq_len && options.vocab_size, "a stream knows its tensors before it is read");
  const auto recipe = std::make_shared<Recipe>();
  recipe->signature = signature_of(options);
  recipe->set = "data." + inputs.name;
  recipe->options = std::move(options);
  if (!FirstRecords(*recipe, inputs).look()) return nullptr;
  return std::make_shared<StreamedLines>(recipe);
}

}  // namespace components::data
