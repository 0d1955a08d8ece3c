#include "components/data/record/record_encoder.h"

#include <algorithm>
#include <utility>

#include "components/data/text_utils.h"
#include "runner/core/error.h"

namespace components::data {
namespace {

using runner::core::Failure;

std::int32_t largest(const std::vector<std::int32_t>& list, std::int32_t least) {
  for (const std::int32_t value : list) least = std::max(least, value);
  return least;
}

}  // namespace

RecordEncoder::RecordEncoder(RecordSetOptions options, std::string set, std::int64_t vocab_size)
    : options_(std::move(options)), set_(std::move(set)), vocab_size_(vocab_size) {}

std::string RecordEncoder::where(const RecordPlace& place) const {
  return path(place) + ":" + std::to_string(place.number);
}

EncodedRecord RecordEncoder::encode(const RecordText& record) const {
  EncodedRecord encoded;
  encoded.place = record.place;
  auto sequence = record.is_text ? options_.parse_text(record.text) : options_.parse(record.text, vocab_size_);
  if (!sequence) {
    encoded.failure = sequence.failure();
    return encoded;
  }
  encoded.sequence = std::move(sequence).value();
  Sequence& its = encoded.sequence;
  if (record.left_out != nullptr) {
    for (const std::string& column : *record.left_out) its.fields.add(column, false);
  }
  for (const auto* list : {&its.input, &its.decoder}) encoded.id_max = largest(*list, encoded.id_max);
  if (!are_numbers(options_.labels)) encoded.id_max = largest(its.labels, encoded.id_max);
  encoded.type_max = largest(its.types, 0);
  encoded.length = its.longest();
  const bool has_own = options_.max_target_len.has_value();
  encoded.is_target_too_long = has_own && its.decoder_length() > *options_.max_target_len;
  encoded.too_long = encoded.is_target_too_long ||
                     (options_.max_seq_len && (has_own ? its.input_length() : encoded.length) > *options_.max_seq_len);
  encoded.cut = encoded.too_long && options_.too_long == LongRecord::kCut;
  const bool was_cut = its.whole > 0 || its.whole_decoder > 0;
  if (encoded.cut && !was_cut) its.cut(*options_.max_seq_len, !options_.cut_left);
  return encoded;
}

RecordEncoder::Fate RecordEncoder::fate_of(const EncodedRecord& record) const {
  if (record.failure) return options_.on_bad_record == BadRecord::kSkip ? Fate::kSkipped : Fate::kRefused;
  if (!record.too_long || record.cut) return Fate::kUsed;
  return options_.too_long == LongRecord::kDrop ? Fate::kDropped : Fate::kRefused;
}

Failure RecordEncoder::refusal(const EncodedRecord& record) const {
  if (record.failure) return *record.failure;
  const bool of_target = record.is_target_too_long;
  const std::string key = of_target ? "max_target_len" : "max_seq_len";
  const std::int64_t length = of_target                 ? record.sequence.decoder_length()
                              : options_.max_target_len ? record.sequence.input_length()
                                                        : record.length;
  return {with_commas(length) + " " + options_.units + ", longer than " + key + " " +
              std::to_string((of_target ? options_.max_target_len : options_.max_seq_len).value_or(0)),
          "raise " + key + ", or use too_long: cut"};
}

std::optional<Failure> RecordEncoder::problem_of_kind(const EncodedRecord& record, bool first_is_pair) const {
  if (record.sequence.is_pair() == first_is_pair) return std::nullopt;
  return Failure{std::string(first_is_pair ? "not a pair of chosen and rejected, as"
                                           : "a pair of chosen and rejected, not a text, as") +
                     " the first line of " + set_ + " is",
                 "put pairs into files of their own"};
}

Failure RecordEncoder::problem_of_packed_pairs() const {
  return {"packing is true, but the lines of " + set_ + " are pairs of chosen and rejected",
          "remove packing: a pair is a row of its own"};
}

void RecordEncoder::refuse(const EncodedRecord& record) const {
  const Failure why = refusal(record);
  throw runner::core::RunError(where(record.place) + ": " + why.message, why.hint);
}

RecordEncoder::Fate RecordLedger::take(const RecordEncoder& encoder, const EncodedRecord& record) {
  using Fate = RecordEncoder::Fate;
  const Fate fate = encoder.fate_of(record);
  ++counts_.records;
  new_reason_.clear();
  if (record.too_long) {
    ++too_long_;
    longest_ = std::max(longest_, record.length);
  }
  if (record.cut) ++cut_;
  if (fate != Fate::kDropped && fate != Fate::kSkipped) return fate;
  const std::string message = encoder.refusal(record).message;
  const std::string reason = encoder.where(record.place) + ": " + message;
  if (first_left_out_.empty()) first_left_out_ = reason;
  if (fate == Fate::kDropped) {
    ++counts_.dropped;
    return fate;
  }
  ++counts_.skipped;
  if (skipped_.add(encoder.path(record.place), record.place.number, message)) new_reason_ = reason;
  return fate;
}

RecordNotes::News RecordNotes::add(const RecordEncoder& encoder, const EncodedRecord& record, bool again) {
  ++records_;
  News news;
  const Sequence& sequence = record.sequence;
  if (!again) fields_.add(sequence.fields);
  if (sequence.odd_roles.empty() && sequence.unread.empty()) return news;
  const std::string where = encoder.where(record.place);
  for (const std::string& role : sequence.odd_roles) {
    if (roles_.add(role)) news.roles.push_back(ToldRoles::warning(where, role));
  }
  news.fields = unread_.add(sequence.unread, where, sequence.fields.form);
  return news;
}

}  // namespace components::data
