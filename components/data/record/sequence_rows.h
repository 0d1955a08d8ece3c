#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "components/data/data.h"
#include "components/data/record/sequence.h"
#include "components/tensor/tensor_spec.h"

namespace components {
class TensorMap;
}

namespace components::data {

/// How rows of a batch get one length.
struct RowFill {
  std::int64_t multiple = 1;  ///< that length is rounded up to
  std::int32_t id = 0;        ///< what is filled in; it has no part in attention and loss
  bool left = false;          ///< in front of shorter rows, not behind them
};

/// Sequences of ids, one behind the other, and rows that are made of neighbours among them: the samples of a set, or
/// those of one batch. All sequences have types, or none; the same of decoder ids. All are pairs, or none.
struct SequenceRows {
  /// Where the lists of a sequence begin among all values.
  struct Stored {
    std::int64_t at = 0;
    std::int64_t length = 0, outputs = 0;  ///< N and M of Sequence
    std::int64_t number = 0;               ///< in its file, from 1
    std::size_t file = 0;
    std::int64_t rejected_at = 0;  ///< of a pair: that of Sequence
    bool desirable = true;         ///< of a labelled record: its label
    bool cut = false;              ///< the record was longer
    bool masked = false;           ///< has a mask with zeros
    bool scattered = false;        ///< with zeros in front of ones
  };
  /// A sample: sequences next to each other.
  struct Row {
    std::size_t first = 0, count = 0;
    std::int64_t length = 0, outputs = 0;  ///< of all of them
  };

  std::vector<std::int32_t> values;  ///< of each sequence: input, target, types, decoder, mask; those that there are
  std::vector<Stored> sequences;
  std::vector<Row> rows;
  bool has_types = false, has_decoder = false, has_pairs = false;
  bool are_single = false;              ///< pairs without a second sequence
  LabelKind labels = LabelKind::kNone;  ///< rows of kDesirable have a second sequence, as those of pairs
  /// Of labels that are one or several numbers of a record, those of each sequence [numbers_each].
  std::vector<float> numbers;
  std::int64_t numbers_each = 0;
  std::int64_t texts_each = 1;            ///< of each sequence, K; more than one: rows are one sequence each
  std::vector<std::int32_t> text_begins;  ///< [sequences, K - 1]: where each text but the first begins

  std::span<const Stored> of(const Row& row) const { return {sequences.data() + row.first, row.count}; }
  const std::int32_t* input(const Stored& stored) const { return values.data() + stored.at; }
  const std::int32_t* target(const Stored& stored) const { return input(stored) + stored.length; }
  const std::int32_t* types(const Stored& stored) const { return target(stored) + stored.outputs; }
  const std::int32_t* decoder(const Stored& stored) const { return types(stored) + (has_types ? stored.length : 0); }
  const std::int32_t* mask(const Stored& stored) const { return decoder(stored) + (has_decoder ? stored.outputs : 0); }

  /// Lengths of the parts of a sequence that do not see each other: both of a pair, or its texts.
  std::vector<std::int64_t> parts_of(std::size_t sequence) const;
  /// The most ids that a text has.
  std::int64_t longest_text() const;

  /// Appends a sequence; `stored` says where it comes from, the rest of it is filled in.
  void add(Stored stored, const Sequence& ids);
  /// Each sequence becomes a pair whose second one is empty: what a model of pairs says of the first is of a text
  /// alone.
  void take_as_pairs();
  /// Writes the tensors of `signature` for these rows, shorter ones filled.
  void write(std::span<const Row* const> rows, const BatchSpec& signature, const RowFill& fill, TensorMap& batch) const;
};

/// Adds what a batch of pairs has beside its rows. `max_seq_len`: of one of the two sequences; 0: half a row, or a
/// whole one of pairs that `are_single`.
void add_pair_tensors(BatchSpec& signature, std::int64_t max_seq_len, bool are_single = false);

/// The smallest multiple that is not less than `length`.
std::int64_t rounded_up(std::int64_t length, std::int64_t multiple);

}  // namespace components::data
