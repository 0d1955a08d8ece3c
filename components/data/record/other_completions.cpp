#include "components/data/record/other_completions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "components/data/record/sequence.h"
#include "components/tensor/tensor_spec.h"

namespace components::data {
namespace {

using Stored = SequenceRows::Stored;
using Ids = std::vector<std::int32_t>;

/// A record before its row is made.
struct Labelled {
  Stored from;
  Ids prompt, completion;
};

/// Positions [begin, end) of a stored sequence. Position i predicts the first token of the completion, so this one is
/// at i + 1; what predicts nothing has no completion.
Labelled labelled(const SequenceRows& rows, const Stored& stored, std::int64_t begin, std::int64_t end,
                  bool desirable) {
  const std::int32_t* const input = rows.input(stored);
  const std::int32_t* const target = rows.target(stored);
  const auto* first = std::find_if(target + begin, target + end, [](std::int32_t id) { return id != kPadTarget; });
  const std::int32_t* const middle = first == target + end ? input + end : input + (first - target) + 1;
  Labelled record{stored, {input + begin, middle}, {middle, input + end}};
  record.from.desirable = desirable;
  return record;
}

Sequence sequence_of(const Ids& prompt, const Ids& completion) {
  Sequence sequence;
  sequence.input = prompt;
  sequence.input.insert(sequence.input.end(), completion.begin(), completion.end());
  sequence.labels.assign(prompt.size(), static_cast<std::int32_t>(kPadTarget));
  sequence.labels.insert(sequence.labels.end(), completion.begin(), completion.end());
  return sequence;
}

}  // namespace

void add_other_completions(SequenceRows& rows, std::optional<std::int64_t> length_max, bool cut_end) {
  std::vector<Labelled> records, rejected;
  for (const Stored& stored : rows.sequences) {
    const std::int64_t middle = stored.rejected_at > 0 ? stored.rejected_at : stored.length;
    records.push_back(labelled(rows, stored, 0, middle, stored.desirable));
    if (middle < stored.length) rejected.push_back(labelled(rows, stored, middle, stored.length, false));
  }
  std::move(rejected.begin(), rejected.end(), std::back_inserter(records));
  rows.values.clear();
  rows.sequences.clear();
  rows.has_pairs = true;
  rows.labels = LabelKind::kDesirable;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Labelled& own = records[i];
    Sequence other = sequence_of(own.prompt, records[i > 0 ? i - 1 : records.size() - 1].completion);
    if (length_max) other.cut(*length_max, cut_end);
    rows.add(own.from, pair_of(sequence_of(own.prompt, own.completion), other));
  }
}

}  // namespace components::data
