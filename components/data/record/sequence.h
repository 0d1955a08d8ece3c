#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "components/data/data.h"
#include "components/data/fields/field_counts.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::data {

/// Ids that a record makes, with what belongs to each.
///
/// N: ids   M: decoder ids where there are any, else N
struct Sequence {
  std::vector<std::int32_t> input;    ///< [N]
  std::vector<std::int32_t> labels;   ///< [M], not shifted; empty: not given
  std::vector<std::int32_t> mask;     ///< [N] of 0 and 1; empty: all 1
  std::vector<std::int32_t> types;    ///< [N]; empty: not given
  std::vector<std::int32_t> decoder;  ///< [M]; empty: not given
  /// Of a pair, where the rejected sequence begins behind the chosen one; both have input and labels alone. 0: no pair.
  std::size_t rejected_at = 0;
  std::vector<std::int32_t> begins;  ///< of several texts, one behind the other: where each but the first begins
  /// [2 N]: of a question about a context, where each id begins and ends in the context, in characters; -1: not in it.
  std::vector<std::int32_t> offsets;
  bool desirable = true;  ///< of a labelled record, its label
  /// Of a record that a head tells, its labels, as label_text() writes them. Of tags, `labels` has places in this list,
  /// one for each id, or kPadTarget. Of a question: its id, its context, and its answers.
  std::vector<std::string> given;
  std::int64_t whole = 0;              ///< ids that it had before it was cut in encoding; 0: it was not
  std::int64_t whole_decoder = 0;      ///< the same of `decoder`
  std::vector<std::string> odd_roles;  ///< of a conversation, those that may be misspelt
  std::vector<std::string> unread;     ///< fields of its record that mean something and are not read
  FieldUse fields;                     ///< all of its record

  bool is_pair() const { return rejected_at > 0; }
  std::int64_t longest() const;         ///< of input and decoder, before it was cut
  std::int64_t input_length() const;    ///< before it was cut; of several texts that of the longest
  std::int64_t decoder_length() const;  ///< before it was cut
  /// Leaves the first `length` positions, or the last ones; of a pair, of each of the two.
  void cut(std::int64_t length, bool first = true);
  /// What each position of a language model is to predict, [M]; kPadTarget: nothing.
  std::vector<std::int32_t> target() const;
  /// What each id is itself, [N]: its label where there are labels; kPadTarget: it has no part in the loss.
  std::vector<std::int32_t> own_target() const;

 private:
  void cut_pair(std::int64_t length, bool first);
};

/// Whether anything of a target counts; of a pair, of both of its sequences. `rejected_at`: as Sequence has it.
bool learns(std::span<const std::int32_t> target, std::size_t rejected_at);

/// Ids alone, at least one each.
Sequence texts_of(const std::vector<Sequence>& texts);

/// Both with input and labels, at least one position each.
Sequence pair_of(Sequence chosen, const Sequence& rejected);

/// Refused, with the reason: what is no JSON object of lists of integers whose lengths fit; ids that are negative or
/// not below `vocab_size`.
runner::core::Result<Sequence> parse_sequence(std::string_view text, std::int64_t vocab_size);
/// The same of a parsed record. `written`: labels are what a decoder writes, and as long as they are; without
/// `decoder_input_ids` it reads them as this says.
runner::core::Result<Sequence> sequence_of(const runner::core::Node& record, std::int64_t vocab_size,
                                           const DecoderIds* written = nullptr);

/// What a decoder reads that is to write these labels.
std::vector<std::int32_t> decoder_input_of(const std::vector<std::int32_t>& labels, const DecoderIds& ids);

}  // namespace components::data
