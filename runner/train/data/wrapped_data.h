#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/data/data.h"
#include "components/data/field_count.h"
#include "components/data/stream.h"

namespace runner::train {

/// Another data set, of which a class that derives from this one changes something.
class WrappedData : public components::data::Dataset, public components::data::CountsFields {
 public:
  explicit WrappedData(std::shared_ptr<components::data::Dataset> set) : set_(std::move(set)) {}

  const components::BatchSpec& signature() const override { return set_->signature(); }
  std::int64_t size() const override { return set_->size(); }
  void fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const override {
    set_->fetch(indices, batch);
  }
  void fetch_at(const components::data::Turn& first, std::span<const std::int64_t> indices,
                components::TensorMap& batch) const override {
    set_->fetch_at(first, indices, batch);
  }
  std::unique_ptr<components::data::Stream> open_stream(const components::data::StreamOptions& options) const override {
    return set_->open_stream(options);
  }
  std::int64_t shuffle_block() const override { return set_->shuffle_block(); }
  std::int64_t length_of(std::int64_t index) const override { return set_->length_of(index); }
  std::int64_t tokens_per_sample() const override { return set_->tokens_per_sample(); }
  double unigram_entropy() const override { return set_->unigram_entropy(); }
  std::int64_t memory_bytes() const override { return set_->memory_bytes(); }
  std::string describe() const override { return set_->describe(); }
  std::string decode(std::span<const std::int64_t> ids) const override { return set_->decode(ids); }
  std::vector<std::int64_t> encode(const std::string& text) const override { return set_->encode(text); }
  std::vector<std::pair<std::string, core::Node>> columns_of(std::int64_t index) const override {
    return set_->columns_of(index);
  }
  std::string class_name(std::int64_t number) const override { return set_->class_name(number); }
  std::optional<components::data::Record> record_of(std::int64_t index) const override {
    return set_->record_of(index);
  }
  std::int64_t records() const override { return set_->records(); }
  std::vector<components::data::Part> parts_of(std::int64_t index) const override { return set_->parts_of(index); }
  components::data::Account account() const override { return set_->account(); }
  std::vector<components::data::FieldCount> field_counts() const override {
    return components::data::field_counts_of(*set_);
  }
  std::shared_ptr<const components::tokenizer::Tokenizer> tokenizer() const override { return set_->tokenizer(); }
  std::int64_t predicted_positions(std::int64_t index) const override { return set_->predicted_positions(index); }
  const components::data::Questions* questions() const override { return set_->questions(); }
  std::vector<std::string> target_names() const override { return set_->target_names(); }
  std::vector<std::pair<std::string, std::string>> kept_of(std::int64_t index) const override {
    return set_->kept_of(index);
  }
  std::vector<std::string> files() const override { return set_->files(); }
  void save_state(core::StateWriter& writer) const override { set_->save_state(writer); }
  void load_state(const core::StateReader& reader) override { set_->load_state(reader); }

 protected:
  const components::data::Dataset& set() const { return *set_; }

 private:
  std::shared_ptr<components::data::Dataset> set_;
};

}  // namespace runner::train
