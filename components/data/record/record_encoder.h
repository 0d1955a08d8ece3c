#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "components/data/fields/field_counts.h"
#include "components/data/fields/odd_roles.h"
#include "components/data/fields/unread_fields.h"
#include "components/data/record/record_counts.h"
#include "components/data/record/record_options.h"
#include "components/data/record/record_order.h"
#include "components/data/record/sequence.h"
#include "components/data/record/skipped_records.h"
#include "runner/core/result.h"

namespace components::data {

/// A record as a sequence, or why it makes none.
struct EncodedRecord {
  RecordPlace place;
  std::optional<runner::core::Failure> failure;  ///< the record is not valid, and has no sequence
  Sequence sequence;
  std::int64_t length = 0;                ///< before it was cut
  std::int32_t id_max = 0, type_max = 0;  ///< before it was cut
  bool too_long = false, cut = false;
  bool is_target_too_long = false;  ///< of max_target_len
};

/// Makes sequences of the records of a set, in memory or as a stream, and knows what becomes of those that are not
/// valid or too long. May be called by several threads.
class RecordEncoder {
 public:
  enum class Fate {
    kUsed,
    kDropped,  ///< too long, by `too_long: drop`
    kSkipped,  ///< not valid, by `on_bad_record: skip`
    kRefused,  ///< one of the two, and an error: refusal()
  };

  /// `set`: `data.train`. `vocab_size`: what ids are below.
  RecordEncoder(RecordSetOptions options, std::string set, std::int64_t vocab_size);

  const RecordSetOptions& options() const { return options_; }
  const std::string& set() const { return set_; }
  const std::string& path(const RecordPlace& place) const { return options_.files[place.file].path; }
  std::string where(const RecordPlace& place) const;  ///< `FILE:LINE`

  EncodedRecord encode(const RecordText& record) const;
  Fate fate_of(const EncodedRecord& record) const;
  /// Why a record is not used, whatever its fate; of one that is used: nothing to read.
  runner::core::Failure refusal(const EncodedRecord& record) const;
  /// Why a valid record cannot be in one set with its first one, `first_is_pair`: all are pairs, or none.
  std::optional<runner::core::Failure> problem_of_kind(const EncodedRecord& record, bool first_is_pair) const;
  /// Why a set of pairs has no `packing`.
  runner::core::Failure problem_of_packed_pairs() const;
  /// RunError of refusal(), with file and line.
  [[noreturn]] void refuse(const EncodedRecord& record) const;

 private:
  RecordSetOptions options_;
  std::string set_;
  std::int64_t vocab_size_;
};

/// What became of the records that were read, in their order.
class RecordLedger {
 public:
  /// Counts the record by its fate. Returns it.
  RecordEncoder::Fate take(const RecordEncoder& encoder, const EncodedRecord& record);

  const RecordCounts& counts() const { return counts_; }
  void set_counts(const RecordCounts& counts) { counts_ = counts; }
  void count_used() { ++counts_.records; }  ///< without its sequence, where all are used
  std::int64_t cut() const { return cut_; }
  std::int64_t too_long() const { return too_long_; }  ///< cut, dropped or refused
  std::int64_t longest() const { return longest_; }    ///< of those
  const SkippedRecords& skipped() const { return skipped_; }
  /// The reason of the last skipped record where it is the first of its kind; else "".
  const std::string& new_reason() const { return new_reason_; }
  /// The first that was dropped or skipped, with its place and why.
  const std::string& first_left_out() const { return first_left_out_; }

 private:
  RecordCounts counts_;
  std::int64_t cut_ = 0, too_long_ = 0, longest_ = 0;
  SkippedRecords skipped_;
  std::string new_reason_, first_left_out_;
};

/// What records hold that is not used as their author may think.
class RecordNotes {
 public:
  /// What was not met before.
  struct News {
    std::vector<runner::core::Failure> roles;  ///< messages and hints
    std::vector<std::string> fields;           ///< that are not read
  };
  /// `again`: it was counted in a pass before, and its fields are not counted.
  News add(const RecordEncoder& encoder, const EncodedRecord& record, bool again = false);
  std::int64_t records() const { return records_; }
  const UnreadFields& unread() const { return unread_; }
  const FieldCounts& fields() const { return fields_; }

 private:
  std::int64_t records_ = 0;
  ToldRoles roles_;
  UnreadFields unread_;
  FieldCounts fields_;
};

}  // namespace components::data
