#include "components/data/mix/joining.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>

#include "components/data/text_utils.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/several_texts.h"
#include "components/tokenizer/tokenizer.h"

// B: samples of the batch   T: positions of the longest one

namespace components::data {
namespace {

/// What stands where a shorter sample of a batch has nothing.
double fill_of(const std::string& tensor, const tokenizer::Tokenizer* tokenizer) {
  if (tensor == kTarget) return kPadTarget;
  const bool of_ids = tensor == kInput || tensor == kDecoderInput;
  return of_ids && tokenizer != nullptr ? tokenizer->fill_id().value_or(0) : 0;
}

bool fills_left(const Dataset& set) {
  const auto tokenizer = set.tokenizer();
  // What a decoder reads has no mask.
  if (set.signature().find(kDecoderInput) != nullptr) return false;
  return tokenizer != nullptr && tokenizer->settings().padding_side == tokenizer::Side::kLeft;
}

/// A mask of a batch whose set has none: all is seen.
at::Tensor whole_mask(const TensorMap& batch) {
  return at::ones(batch.at(kInput).sizes().slice(0, 2), at::TensorOptions(at::kBool));
}

/// [b, t, ...] in the first or the last of `length` positions. `limit`: where kPositions restart; 0: nowhere.
at::Tensor widened(const at::Tensor& rows, const std::string& name, std::int64_t length, double fill, bool left,
                   std::int64_t limit) {
  const std::int64_t more = length - rows.size(1);
  if (more == 0) return rows;
  std::vector<std::int64_t> shape = rows.sizes().vec();
  shape[1] = more;
  at::Tensor filled = at::full(shape, fill, rows.options());
  if (name == kPositions) {  // what is filled goes on counting or, in front, counts by itself
    const at::Tensor count = at::arange(more, rows.options()).unsqueeze(0);
    filled = left ? count.expand({rows.size(0), more}) : rows.narrow(1, rows.size(1) - 1, 1) + 1 + count;
  }
  if (name == kPositions && limit > 0) filled = filled.remainder(limit);
  return left ? at::cat({filled, rows}, 1) : at::cat({rows, filled}, 1);
}

/// The rows of all sets, in the order of `places`.
at::Tensor joined(const TensorSpec& spec, std::span<const RowsOfSet> sets, const at::Tensor& places,
                  const BatchSpec& signature, const Dataset& first) {
  std::vector<at::Tensor> rows;
  std::int64_t length = 0;
  for (const RowsOfSet& set : sets) {
    const at::Tensor* tensor = set.tensors.find(spec.name);
    rows.push_back(tensor != nullptr ? *tensor : whole_mask(set.tensors));
    if (rows.back().dim() > 1) length = std::max(length, rows.back().size(1));
  }
  const bool sequence = spec.shape.size() > 1 && spec.shape[1] == kTime;
  if (sequence && rows.size() > 1) {
    const double fill = fill_of(spec.name, first.tokenizer().get());
    const bool pairs = signature.find(kRejectedAt) != nullptr || signature.find(kTextsAt) != nullptr;
    const bool left = !pairs && fills_left(first);
    for (at::Tensor& one : rows) one = widened(one, spec.name, length, fill, left, pairs ? spec.max_length : 0);
  }
  return rows.size() == 1 ? rows.front() : at::cat(rows, 0).index_select(0, places);
}

/// A set beside others.
class Merge {
 public:
  Merge(const std::vector<std::shared_ptr<const Dataset>>& sets, const Inputs& inputs) : sets_(sets), inputs_(inputs) {}

  /// Nothing when an error was reported.
  std::optional<BatchSpec> signature() {
    BatchSpec merged = sets_.front()->signature();
    for (std::size_t i = 1; i < sets_.size(); ++i) {
      if (!add(sets_[i]->signature(), i, merged) || !has_same_tokens(i)) return std::nullopt;
    }
    if (!needs_mask_) return merged;
    TensorSpec mask{kAttentionMask, Dtype::kBool, {kBatch, kTime}, false};
    if (const TensorSpec* there = merged.find(kAttentionMask)) mask = *there;
    const TensorSpec& input = merged.at(kInput);
    mask.max_length = input.max_length;
    mask.padded = input.padded;
    if (TensorSpec* there = merged.find(kAttentionMask)) {
      *there = mask;
    } else {
      merged.tensors.push_back(mask);
    }
    return merged;
  }

 private:
  bool refuse(std::size_t i, const std::string& what, const std::string& hint) {
    const runner::core::Node* sets = inputs_.block.find("sets");
    const bool is_listed = sets != nullptr && sets->is_sequence() && i < sets->items().size();
    inputs_.diagnostics.error(is_listed ? sets->items()[i].location() : inputs_.block.location(),
                              "data." + inputs_.name + ": set " + std::to_string(i + 1) + " " + what, hint);
    return false;
  }

  bool add(const BatchSpec& one, std::size_t i, BatchSpec& merged) {
    if ((one.find(kRejectedAt) == nullptr) != (merged.find(kRejectedAt) == nullptr)) {
      const bool pairs = one.find(kRejectedAt) != nullptr;
      return refuse(i,
                    pairs ? "has pairs of chosen and rejected, and the first has texts"
                          : "has texts, and the first has pairs of chosen and rejected",
                    "join sets of one kind");
    }
    for (const TensorSpec& spec : one.tensors) {
      if (spec.name == kAttentionMask && merged.find(kAttentionMask) == nullptr) {
        merged.tensors.push_back(spec);
        needs_mask_ = true;
      } else if (merged.find(spec.name) == nullptr) {
        return refuse(i, "has " + spec.name + ", and the first has not", hint_of(spec.name));
      }
    }
    for (TensorSpec& spec : merged.tensors) {
      const TensorSpec* other = one.find(spec.name);
      if (other == nullptr && spec.name == kAttentionMask) {
        needs_mask_ = true;
      } else if (other == nullptr) {
        return refuse(i, "has no " + spec.name + ", and the first has", hint_of(spec.name));
      } else if (!join(*other, i, spec)) {
        return false;
      }
    }
    return true;
  }

  /// Ids mean the same in all sets.
  bool has_same_tokens(std::size_t i) {
    const auto first = sets_.front()->tokenizer(), one = sets_[i]->tokenizer();
    if (first == nullptr || one == nullptr || first == one) return true;
    if (first->description().path == one->description().path) return true;
    for (std::int32_t id = 0; id < first->id_limit(); ++id) {
      const auto token = first->token_of(id), other = one->token_of(id);
      if (token == other) continue;
      const auto quoted = [](const std::optional<std::string>& of) { return of ? '"' + *of + '"' : "no token"; };
      return refuse(i,
                    "has another tokenizer: its id " + std::to_string(id) + " is " + quoted(other) +
                        ", and the first set's is " + quoted(token),
                    "use one tokenizer for both");
    }
    return true;
  }

  static std::string hint_of(const std::string& tensor) {
    return tensor == kPositions ? "give both packing: true, or none" : "join sets of one kind";
  }

  bool join(const TensorSpec& other, std::size_t i, TensorSpec& spec) {
    if (other.dtype != spec.dtype || other.shape != spec.shape) {
      return refuse(i, "has " + spec.name + " of " + to_text(other) + ", and the first of " + to_text(spec),
                    "join sets whose samples have one shape");
    }
    if (other.vocab_size != spec.vocab_size || other.num_classes != spec.num_classes) {
      const bool ids = other.vocab_size != spec.vocab_size;
      return refuse(i,
                    "has " + spec.name + " below " + with_commas(ids ? other.vocab_size : other.num_classes) +
                        ", and the first below " + with_commas(ids ? spec.vocab_size : spec.num_classes),
                    ids ? "use one tokenizer for both" : "join sets with the same classes");
    }
    const bool sequence = spec.shape.size() > 1 && spec.shape[1] == kTime;
    spec.padded = spec.padded || other.padded || (sequence && spec.max_length != other.max_length);
    spec.max_length = std::max(spec.max_length, other.max_length);
    spec.scattered = spec.scattered || other.scattered;
    spec.has_ignored = spec.has_ignored || other.has_ignored;
    if (spec.padded && sequence && spec.name == kTarget) spec.has_ignored = true;
    if (spec.padded && spec.name == kInput && fills_left(*sets_.front())) needs_mask_ = true;
    return true;
  }

  const std::vector<std::shared_ptr<const Dataset>>& sets_;
  const Inputs& inputs_;
  bool needs_mask_ = false;
};

}  // namespace

std::optional<BatchSpec> joined_signature(const std::vector<std::shared_ptr<const Dataset>>& sets,
                                          const Inputs& inputs) {
  return Merge(sets, inputs).signature();
}

void join_rows(std::span<const RowsOfSet> sets, const BatchSpec& signature, const Dataset& first, TensorMap& batch) {
  std::vector<std::int64_t> order;
  for (const RowsOfSet& set : sets) order.insert(order.end(), set.rows.begin(), set.rows.end());
  std::vector<std::int64_t> from(order.size());  // the inverse: where the batch's rows lie
  for (std::size_t i = 0; i < order.size(); ++i)
    from[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  const at::Tensor places = at::tensor(from, at::kLong);
  for (const TensorSpec& spec : signature.tensors) batch.set(spec.name, joined(spec, sets, places, signature, first));
}

}  // namespace components::data
