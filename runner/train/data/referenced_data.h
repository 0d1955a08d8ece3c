#pragma once

#include <memory>
#include <vector>

#include "runner/train/data/wrapped_data.h"

namespace runner::train {

/// The figures of a reference model for a set of pairs, by sample: the logarithmic probabilities of both completions.
struct ReferenceFigures {
  std::vector<float> chosen, rejected;
};

/// A set of pairs whose batches also have kReferenceChosen and kReferenceRejected. They are known before the first
/// step, not when the set is made.
class ReferencedData final : public WrappedData {
 public:
  explicit ReferencedData(std::shared_ptr<components::data::Dataset> pairs);

  const components::data::Dataset& pairs() const { return set(); }
  /// One of each for each sample. Before anything is fetched.
  void set_figures(ReferenceFigures figures);

  const components::BatchSpec& signature() const override { return signature_; }
  void fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const override;
  void fetch_at(const components::data::Turn&, std::span<const std::int64_t> indices,
                components::TensorMap& batch) const override {
    fetch(indices, batch);
  }
  std::int64_t memory_bytes() const override;

 private:
  components::BatchSpec signature_;
  ReferenceFigures figures_;
};

}  // namespace runner::train
