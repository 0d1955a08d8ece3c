#include "components/data/record/sequence_rows.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/several_texts.h"
#include "components/tensor/tensors.h"

// B: samples of the batch   T: ids of the longest one   D: its decoder ids   M: D where there are any, else T

namespace components::data {
namespace {

using Stored = SequenceRows::Stored;
using Row = SequenceRows::Row;
using Rows = std::span<const Row* const>;

template <typename T>
struct Fill {
  T value;
  bool left;  ///< in front
};

/// A tensor [B, width]; `copy(stored, to)` writes a sequence and returns its end.
template <typename T, typename Copy>
at::Tensor padded(const SequenceRows& all, Rows rows, std::int64_t width, at::ScalarType type, const Fill<T>& fill,
                  Copy copy) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(rows.size()), width}, type);
  T* to = tensor.mutable_data_ptr<T>();
  for (const Row* row : rows) {
    T* end = to;
    for (const Stored& stored : all.of(*row)) end = copy(stored, end);
    std::fill(end, to + width, fill.value);
    if (fill.left) std::rotate(to, end, to + width);
    to += width;
  }
  return tensor;
}

/// kPositions of these rows. What is filled goes on counting or, in front, counts by itself; behind pairs and several
/// texts, which are longer than what a model sees at once, it restarts at `limit`.
at::Tensor positions_of(const SequenceRows& all, Rows rows, std::int64_t width, std::int64_t limit, bool fill_left) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(rows.size()), width}, at::kLong);
  auto* to = tensor.mutable_data_ptr<std::int64_t>();
  const bool has_parts = all.has_pairs || all.texts_each > 1;
  for (const Row* row : rows) {
    std::int64_t* const end = to + width;
    if (fill_left) {
      std::iota(to, end - row->length, std::int64_t{0});
      to = end - row->length;
    }
    for (std::size_t i = row->first; i < row->first + row->count; ++i) {
      for (const std::int64_t part : all.parts_of(i)) {
        std::iota(to, to + part, std::int64_t{0});
        to += part;
      }
    }
    for (std::int64_t next = to[-1] + 1; to < end; ++next) *to++ = has_parts ? next % limit : next;
  }
  return tensor;
}

/// kTextsAt of these rows.
at::Tensor texts_at_of(const SequenceRows& all, Rows rows) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(rows.size()), all.texts_each}, at::kLong);
  auto* to = tensor.mutable_data_ptr<std::int64_t>();
  for (const Row* row : rows) {
    *to++ = 0;
    const auto further = static_cast<std::size_t>(all.texts_each - 1);
    to = std::copy_n(all.text_begins.data() + row->first * further, further, to);
  }
  return tensor;
}

/// kRejectedAt of these rows.
at::Tensor rejected_at_of(const SequenceRows& all, Rows rows) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(rows.size())}, at::kLong);
  auto* to = tensor.mutable_data_ptr<std::int64_t>();
  for (const Row* row : rows) *to++ = all.of(*row).front().rejected_at;
  return tensor;
}

/// kDesirable of these rows.
at::Tensor desirable_of(const SequenceRows& all, Rows rows) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(rows.size())}, at::kBool);
  auto* to = tensor.mutable_data_ptr<bool>();
  for (const Row* row : rows) *to++ = all.of(*row).front().desirable;
  return tensor;
}

/// kTarget of rows whose labels are numbers: a class [B], or values [B, L].
at::Tensor numbers_of(const SequenceRows& all, Rows rows, const TensorSpec& target) {
  const std::int64_t each = all.numbers_each;
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(rows.size()), each}, at::kFloat);
  float* to = tensor.mutable_data_ptr<float>();
  for (const Row* row : rows) {
    to = std::copy_n(all.numbers.data() + static_cast<std::ptrdiff_t>(row->first) * each, each, to);
  }
  return target.dtype == Dtype::kInt64 ? tensor.squeeze(1).to(at::kLong) : tensor;
}

at::Tensor mask_of(const SequenceRows& all, Rows rows, std::int64_t width, bool fill_left) {
  return padded<bool>(all, rows, width, at::kBool, {false, fill_left}, [&all](const Stored& one, bool* to) {
    if (!one.masked) return std::fill_n(to, one.length, true);
    return std::transform(all.mask(one), all.mask(one) + one.length, to, [](std::int32_t bit) { return bit != 0; });
  });
}

}  // namespace

std::int64_t rounded_up(std::int64_t length, std::int64_t multiple) {
  return (length + multiple - 1) / multiple * multiple;
}

void add_pair_tensors(BatchSpec& signature, std::int64_t max_seq_len, bool are_single) {
  signature.tensors.push_back({kRejectedAt, Dtype::kInt64, {kBatch}, false});
  if (are_single) return;
  std::int64_t& positions = signature.find(kPositions)->max_length;  // of the longer sequence of a pair
  positions = std::max(max_seq_len, (positions + 1) / 2);
}

void SequenceRows::add(Stored stored, const Sequence& ids) {
  stored.at = static_cast<std::int64_t>(values.size());
  stored.length = static_cast<std::int64_t>(ids.input.size());
  stored.rejected_at = static_cast<std::int64_t>(ids.rejected_at);
  const bool is_label = are_targets(labels) || labels == LabelKind::kMasked || labels == LabelKind::kTexts;
  const std::vector<std::int32_t> target = is_label                         ? ids.labels
                                           : labels == LabelKind::kUnmasked ? ids.own_target()
                                                                            : ids.target();
  stored.outputs = static_cast<std::int64_t>(target.size());
  const auto first = std::find(ids.mask.begin(), ids.mask.end(), 0);
  stored.masked = first != ids.mask.end();
  stored.scattered = std::find(first, ids.mask.end(), 1) != ids.mask.end();
  for (const auto* list : {&ids.input, &target, &ids.types, &ids.decoder}) {
    values.insert(values.end(), list->begin(), list->end());
  }
  if (stored.masked) values.insert(values.end(), ids.mask.begin(), ids.mask.end());
  text_begins.insert(text_begins.end(), ids.begins.begin(), ids.begins.end());
  sequences.push_back(stored);
}

std::vector<std::int64_t> SequenceRows::parts_of(std::size_t sequence) const {
  const Stored& stored = sequences[sequence];
  if (texts_each == 1) return {stored.rejected_at, stored.length - stored.rejected_at};
  std::vector<std::int64_t> parts;
  const auto further = static_cast<std::size_t>(texts_each - 1);
  std::int64_t from = 0;
  for (std::size_t i = sequence * further; i < (sequence + 1) * further; ++i) {
    parts.push_back(text_begins[i] - from);
    from = text_begins[i];
  }
  parts.push_back(stored.length - from);
  return parts;
}

std::int64_t SequenceRows::longest_text() const {
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    for (const std::int64_t part : parts_of(i)) longest = std::max(longest, part);
  }
  return longest;
}

void SequenceRows::take_as_pairs() {
  for (Stored& stored : sequences) stored.rejected_at = stored.length;
  has_pairs = are_single = true;
}

void SequenceRows::write(Rows rows, const BatchSpec& signature, const RowFill& fill, TensorMap& batch) const {
  std::int64_t length = 0, outputs = 0;
  for (const Row* row : rows) {
    length = std::max(length, row->length);
    outputs = std::max(outputs, row->outputs);
  }
  length = rounded_up(length, fill.multiple);
  outputs = rounded_up(outputs, fill.multiple);
  const auto copied = [&](std::int64_t width, std::int64_t value,
                          const std::int32_t* (SequenceRows::*of)(const Stored&) const, std::int64_t Stored::*count) {
    return padded<std::int64_t>(
        *this, rows, width, at::kLong, {value, fill.left},
        [&](const Stored& one, std::int64_t* to) { return std::copy_n((this->*of)(one), one.*count, to); });
  };
  batch.set(kInput, copied(length, fill.id, &SequenceRows::input, &Stored::length));
  if (numbers_each > 0) {
    batch.set(kTarget, numbers_of(*this, rows, signature.at(kTarget)));
  } else if (are_numbers(labels)) {
    const std::int64_t each = rows.front()->outputs;
    const at::Tensor target = padded<std::int64_t>(
        *this, rows, each, at::kLong, {kPadTarget, false},
        [this](const Stored& one, std::int64_t* to) { return std::copy_n(this->target(one), one.outputs, to); });
    batch.set(kTarget, labels == LabelKind::kChoices ? target.squeeze(1) : target);
  } else if (signature.find(kTarget) != nullptr) {
    batch.set(kTarget, copied(outputs, kPadTarget, &SequenceRows::target, &Stored::outputs));
  }
  if (signature.find(kAttentionMask) != nullptr) batch.set(kAttentionMask, mask_of(*this, rows, length, fill.left));
  if (const TensorSpec* positions = signature.find(kPositions)) {
    batch.set(kPositions, positions_of(*this, rows, length, positions->max_length, fill.left));
  }
  if (has_types) batch.set(kTokenTypes, copied(length, 0, &SequenceRows::types, &Stored::length));
  if (signature.find(kTextsAt) != nullptr) batch.set(kTextsAt, texts_at_of(*this, rows));
  if (has_pairs) batch.set(kRejectedAt, rejected_at_of(*this, rows));
  if (labels == LabelKind::kDesirable) batch.set(kDesirable, desirable_of(*this, rows));
  if (has_decoder) batch.set(kDecoderInput, copied(outputs, fill.id, &SequenceRows::decoder, &Stored::outputs));
}

}  // namespace components::data
