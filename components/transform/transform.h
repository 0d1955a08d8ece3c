#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace components {
class TensorMap;
namespace tokenizer {
class Tokenizer;
}
}  // namespace components

namespace components::transform {

/// All that the random numbers of a sample depend on: whichever thread or process reads the sample, in whichever batch,
/// they are the same.
struct Draw {
  std::uint64_t seed = 0;  ///< of the recipe, and of the transform among those of its set
  std::int64_t epoch = 0;
  std::int64_t index = 0;  ///< of the sample in the order of the epoch; a stream has one epoch without an end
};

/// Changes the samples of a data set while they are read, in another way in each epoch. It has no state.
class Transform {
 public:
  virtual ~Transform() = default;
  /// The tensors that it returns for those of Inputs::data. Names, types and shapes stay the same, unless it
  /// changes_lengths().
  virtual BatchSpec signature() const = 0;
  /// Whether samples get other tensors, of lengths that follow from the sample alone.
  virtual bool changes_lengths() const { return false; }
  /// The most positions of any tensor that it makes of a sample of that many.
  virtual std::int64_t longest_of(std::int64_t positions) const { return positions; }
  /// What stands behind a shorter sample of a batch, in the tensor of that name; of a transform that changes_lengths().
  virtual std::int64_t fill_of(std::string_view /*tensor*/) const { return 0; }
  /// Changes a batch of one sample in place, padding included; of a transform that changes_lengths() without padding.
  /// RunError when the sample does not fit. Called by several threads.
  virtual void apply(TensorMap& sample, const Draw& draw) const = 0;
  /// For `plan`, behind what the set says of itself: `15 % of tokens masked`.
  virtual std::string describe() const = 0;
};

/// Arguments to make a transform of a data set.
struct Inputs {
  const BatchSpec& data;                                  ///< what the set, or the transform before, puts into a batch
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  ///< the set's, else the recipe's; null: neither has one
  std::string set;                                        ///< `data.train`, for messages
  const runner::core::Node& block;                        ///< for locations in messages
  runner::core::Diagnostics& diagnostics;
  std::int32_t decoder_start = 0;  ///< what the decoder of a model that writes one text of another reads first
};

/// Null when `diagnostics` got an error: the transform does not fit the set.
std::shared_ptr<Transform> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::transform
