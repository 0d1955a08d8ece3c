#include "components/data/selection.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "components/data/block_location.h"
#include "components/data/field_count.h"
#include "components/data/text_utils.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/several_texts.h"
#include "components/tensor/tensors.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"

// B: samples of the batch   T: positions of the longest one

namespace components::data {
namespace {

using Sets = std::vector<std::shared_ptr<const Dataset>>;

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

class Selection final : public Dataset, public CountsFields {
 public:
  Selection(BatchSpec signature, SelectionParts parts) : signature_(std::move(signature)), parts_(std::move(parts)) {
    std::int64_t begin = 0;
    for (const auto& set : parts_.sets) {
      begins_.push_back(begin);
      begin += set->size();
    }
    size_ = parts_.chosen ? static_cast<std::int64_t>(parts_.chosen->size()) : begin;
  }

  const BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return size_; }

  void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const override {
    std::vector<std::vector<std::int64_t>> samples(parts_.sets.size()), rows(parts_.sets.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Place place = place_of(indices[i]);
      samples[place.set].push_back(place.index);
      rows[place.set].push_back(static_cast<std::int64_t>(i));
    }
    std::vector<TensorMap> batches;
    std::vector<std::int64_t> order;
    for (std::size_t set = 0; set < samples.size(); ++set) {
      if (samples[set].empty()) continue;
      parts_.sets[set]->fetch(samples[set], batches.emplace_back());
      order.insert(order.end(), rows[set].begin(), rows[set].end());
    }
    std::vector<std::int64_t> from(order.size());  // the inverse: where the batch's rows lie
    for (std::size_t i = 0; i < order.size(); ++i)
      from[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    const at::Tensor places = at::tensor(from, at::kLong);
    for (const TensorSpec& spec : signature_.tensors) batch.set(spec.name, joined(spec, batches, places));
  }

  std::int64_t length_of(std::int64_t index) const override {
    if (!signature_.padded()) return 0;
    const Place place = place_of(index);
    const Dataset& set = *parts_.sets[place.set];
    return set.signature().padded() ? set.length_of(place.index) : set.tokens_per_sample();
  }

  std::int64_t tokens_per_sample() const override {
    const std::int64_t tokens = first().tokens_per_sample();
    const bool same = std::all_of(parts_.sets.begin(), parts_.sets.end(),
                                  [tokens](const auto& set) { return set->tokens_per_sample() == tokens; });
    return same && !signature_.padded() ? tokens : 0;
  }

  double unigram_entropy() const override {
    return parts_.sets.size() == 1 ? first().unigram_entropy() : std::numeric_limits<double>::quiet_NaN();
  }
  std::int64_t memory_bytes() const override { return sum(&Dataset::memory_bytes); }

  std::string describe() const override {
    const std::string all = runner::core::joined(parts_.sets, "; ", [](const auto& set) { return set->describe(); });
    if (parts_.chosen) return counted_large(size_, "sample", "samples") + " of: " + all;
    return counted_large(size_, "sample", "samples") + " in " +
           counted_large(static_cast<std::int64_t>(parts_.sets.size()), "set", "sets") + ": " + all;
  }

  std::string decode(std::span<const std::int64_t> ids) const override { return first().decode(ids); }
  std::vector<std::int64_t> encode(const std::string& text) const override { return first().encode(text); }
  std::string class_name(std::int64_t number) const override { return first().class_name(number); }
  std::vector<std::string> target_names() const override { return first().target_names(); }
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer() const override { return first().tokenizer(); }

  std::vector<std::pair<std::string, runner::core::Node>> columns_of(std::int64_t index) const override {
    const Place place = place_of(index);
    return parts_.sets[place.set]->columns_of(place.index);
  }

  std::optional<Record> record_of(std::int64_t index) const override {
    const Place place = place_of(index);
    std::optional<Record> record = parts_.sets[place.set]->record_of(place.index);
    if (record) name_file(*record, place.set);
    return record;
  }

  std::vector<Part> parts_of(std::int64_t index) const override {
    const Place place = place_of(index);
    std::vector<Part> parts = parts_.sets[place.set]->parts_of(place.index);
    for (Part& part : parts) {
      if (part.record) name_file(*part.record, place.set);
    }
    return parts;
  }

  std::vector<std::pair<std::string, std::string>> kept_of(std::int64_t index) const override {
    const Place place = place_of(index);
    return parts_.sets[place.set]->kept_of(place.index);
  }

  std::int64_t predicted_positions(std::int64_t index) const override {
    const Place place = place_of(index);
    return parts_.sets[place.set]->predicted_positions(place.index);
  }

  std::int64_t records() const override { return sum(&Dataset::records); }

  Account account() const override {
    Account all;
    if (parts_.chosen) {
      for (std::int64_t i = 0; i < size_; ++i) {
        for (const Part& part : parts_of(i)) {
          ++all.records;
          all.cut += part.cut ? 1 : 0;
        }
      }
      return all;
    }
    for (const auto& set : parts_.sets) {
      const Account one = set->account();
      all.records += one.records;
      all.cut += one.cut;
      all.dropped += one.dropped;
      all.skipped += one.skipped;
      if (!one.reasons.empty()) all.reasons += (all.reasons.empty() ? "" : "; ") + one.reasons;
    }
    return all;
  }

  /// Of the sets, whole.
  std::vector<FieldCount> field_counts() const override {
    std::vector<FieldCount> all;
    for (const auto& set : parts_.sets) add_counts(all, field_counts_of(*set));
    return all;
  }

  std::vector<std::string> files() const override {
    std::vector<std::string> all;
    std::set<std::string> seen;
    for (const auto& set : parts_.sets) {
      for (std::string& file : set->files()) {
        if (seen.insert(file).second) all.push_back(std::move(file));
      }
    }
    return all;
  }

 private:
  struct Place {
    std::size_t set;
    std::int64_t index;
  };

  const Dataset& first() const { return *parts_.sets.front(); }

  Place place_of(std::int64_t index) const {
    RUNNER_ASSERT(index >= 0 && index < size_, "the sampler keeps to the data set");
    if (parts_.chosen) index = (*parts_.chosen)[static_cast<std::size_t>(index)];
    const auto set = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), index) -
                                              begins_.begin() - 1);  // of empty sets the last one
    return {set, index - begins_[set]};
  }

  std::int64_t sum(std::int64_t (Dataset::*of)() const) const {
    return std::accumulate(parts_.sets.begin(), parts_.sets.end(), std::int64_t{0},
                           [of](std::int64_t before, const auto& set) { return before + (*set.*of)(); });
  }

  /// A set of one file does not name it.
  void name_file(Record& record, std::size_t set) const {
    if (!record.file.empty() || parts_.sets.size() == 1) return;
    const std::vector<std::string> files = parts_.sets[set]->files();
    if (!files.empty()) record.file = files.front();
  }

  /// The rows of all batches, in the order of `places`.
  at::Tensor joined(const TensorSpec& spec, const std::vector<TensorMap>& batches, const at::Tensor& places) const {
    std::vector<at::Tensor> rows;
    std::int64_t length = 0;
    for (const TensorMap& batch : batches) {
      const at::Tensor* tensor = batch.find(spec.name);
      rows.push_back(tensor != nullptr ? *tensor : whole_mask(batch));
      if (rows.back().dim() > 1) length = std::max(length, rows.back().size(1));
    }
    const bool sequence = spec.shape.size() > 1 && spec.shape[1] == kTime;
    if (sequence && rows.size() > 1) {
      const double fill = fill_of(spec.name, tokenizer().get());
      const bool pairs = signature_.find(kRejectedAt) != nullptr || signature_.find(kTextsAt) != nullptr;
      const bool left = !pairs && fills_left(first());
      for (at::Tensor& one : rows) one = widened(one, spec.name, length, fill, left, pairs ? spec.max_length : 0);
    }
    return rows.size() == 1 ? rows.front() : at::cat(rows, 0).index_select(0, places);
  }

  BatchSpec signature_;
  SelectionParts parts_;
  std::vector<std::int64_t> begins_;
  std::int64_t size_ = 0;
};

/// A set beside others.
class Merge {
 public:
  Merge(const Sets& sets, const Inputs& inputs) : sets_(sets), inputs_(inputs) {}

  /// Nothing when an error was reported.
  std::optional<BatchSpec> signature() {
    BatchSpec merged = sets_.front()->signature();
    for (std::size_t i = 1; i < sets_.size(); ++i) {
      if (!add(sets_[i]->signature(), i, merged)) return std::nullopt;
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
    inputs_.diagnostics.error(inputs_.block.location(),
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

  const Sets& sets_;
  const Inputs& inputs_;
  bool needs_mask_ = false;
};

}  // namespace

bool is_counted(const Dataset& set, const Inputs& inputs) {
  if (!set.is_stream()) return true;
  inputs.diagnostics.error(location_of(inputs.block, "streaming"),
                           "data." + inputs.name + " is streamed, and concat and subset number their samples",
                           "leave streaming out, or list all files in the path of one streamed set");
  return false;
}

std::shared_ptr<Dataset> make_selection(SelectionParts parts, const Inputs& inputs) {
  auto signature = Merge(parts.sets, inputs).signature();
  if (!signature) return nullptr;
  return std::make_shared<Selection>(std::move(*signature), std::move(parts));
}

}  // namespace components::data
