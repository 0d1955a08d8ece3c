#include "components/data/mix/selection.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "components/data/block_location.h"
#include "components/data/field_count.h"
#include "components/data/mix/joining.h"
#include "components/data/text_utils.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

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
    std::vector<RowsOfSet> all;
    for (std::size_t set = 0; set < samples.size(); ++set) {
      if (samples[set].empty()) continue;
      RowsOfSet& one = all.emplace_back();
      parts_.sets[set]->fetch(samples[set], one.tensors);
      one.rows = std::move(rows[set]);
    }
    join_rows(all, signature_, first(), batch);
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

  BatchSpec signature_;
  SelectionParts parts_;
  std::vector<std::int64_t> begins_;
  std::int64_t size_ = 0;
};

}  // namespace

bool is_counted(const Dataset& set, const Inputs& inputs) {
  if (!set.is_stream()) return true;
  inputs.diagnostics.error(location_of(inputs.block, "streaming"),
                           "data." + inputs.name + " is streamed, and subset and fold number their samples",
                           "remove streaming, or use the set as it is");
  return false;
}

std::shared_ptr<Dataset> make_selection(SelectionParts parts, const Inputs& inputs) {
  auto signature = joined_signature(parts.sets, inputs);
  if (!signature) return nullptr;
  return std::make_shared<Selection>(std::move(*signature), std::move(parts));
}

}  // namespace components::data
