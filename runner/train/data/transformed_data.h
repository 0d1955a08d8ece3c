#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/transform/transform.h"
#include "runner/core/node.h"
#include "runner/train/data/wrapped_data.h"

namespace runner::train {

/// A data set whose samples transforms change, one after the other, where they are read.
class TransformedData final : public WrappedData {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::int64_t multiple = 1;  ///< of positions of a batch, where samples get other lengths
  };
  /// The first of them was made for the signature of the set, each of the others for that of the one before.
  TransformedData(std::shared_ptr<components::data::Dataset> set,
                  std::vector<std::shared_ptr<components::transform::Transform>> transforms, const Options& options);
  ~TransformedData() override;

  const components::BatchSpec& signature() const override { return signature_; }
  void fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const override;
  void fetch_at(const components::data::Turn& first, std::span<const std::int64_t> indices,
                components::TensorMap& batch) const override;
  std::unique_ptr<components::data::Stream> open_stream(const components::data::StreamOptions& options) const override;
  std::int64_t length_of(std::int64_t index) const override;
  std::int64_t tokens_per_sample() const override;
  std::int64_t predicted_positions(std::int64_t index) const override;
  std::vector<components::data::Part> parts_of(std::int64_t index) const override;
  double unigram_entropy() const override;  ///< undefined: not all that is in the set is learnt
  std::string describe() const override;

 private:
  class ChangedStream;
  struct Chain;

  components::TensorMap fetched(std::int64_t index) const;

  std::shared_ptr<const Chain> chain_;
  components::BatchSpec signature_;
};

/// The set with the `transforms` of its block; itself where it has none. Null when `diagnostics` got an error.
std::shared_ptr<components::data::Dataset> with_transforms(std::shared_ptr<components::data::Dataset> set,
                                                           const components::data::Inputs& inputs);

/// Whether the block of a data set has transforms.
bool has_transforms(const core::Node& block);

}  // namespace runner::train
