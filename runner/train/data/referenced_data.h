#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/data/data.h"

namespace runner::train {

/// The figures of a reference model for a set of pairs, by sample: the logarithmic probabilities of both completions.
struct ReferenceFigures {
  std::vector<float> chosen, rejected;
};

/// A set of pairs whose batches also have kReferenceChosen and kReferenceRejected. They are known before the first
/// step, not when the set is made.
class ReferencedData final : public components::data::Dataset {
 public:
  explicit ReferencedData(std::shared_ptr<components::data::Dataset> pairs);

  const components::data::Dataset& pairs() const { return *pairs_; }
  /// One of each for each sample. Before anything is fetched.
  void set_figures(ReferenceFigures figures);

  const components::BatchSpec& signature() const override { return signature_; }
  void fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const override;

  std::int64_t size() const override { return pairs_->size(); }
  std::int64_t shuffle_block() const override { return pairs_->shuffle_block(); }
  std::int64_t length_of(std::int64_t index) const override { return pairs_->length_of(index); }
  std::int64_t tokens_per_sample() const override { return pairs_->tokens_per_sample(); }
  double unigram_entropy() const override { return pairs_->unigram_entropy(); }
  std::int64_t memory_bytes() const override;
  std::string describe() const override { return pairs_->describe(); }
  std::string decode(std::span<const std::int64_t> ids) const override { return pairs_->decode(ids); }
  std::vector<std::int64_t> encode(const std::string& text) const override { return pairs_->encode(text); }
  std::optional<components::data::Record> record_of(std::int64_t index) const override {
    return pairs_->record_of(index);
  }
  std::int64_t records() const override { return pairs_->records(); }
  std::vector<components::data::Part> parts_of(std::int64_t index) const override { return pairs_->parts_of(index); }
  components::data::Account account() const override { return pairs_->account(); }
  std::shared_ptr<const components::tokenizer::Tokenizer> tokenizer() const override { return pairs_->tokenizer(); }
  std::int64_t predicted_positions(std::int64_t index) const override { return pairs_->predicted_positions(index); }
  std::vector<std::pair<std::string, std::string>> kept_of(std::int64_t index) const override {
    return pairs_->kept_of(index);
  }
  std::vector<std::string> files() const override { return pairs_->files(); }
  void save_state(core::StateWriter& writer) const override { pairs_->save_state(writer); }
  void load_state(const core::StateReader& reader) override { pairs_->load_state(reader); }

 private:
  std::shared_ptr<components::data::Dataset> pairs_;
  components::BatchSpec signature_;
  ReferenceFigures figures_;
};

}  // namespace runner::train
