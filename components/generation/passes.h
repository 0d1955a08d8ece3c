#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "components/model/model.h"
#include "components/part/cached/kv_cache.h"
#include "components/tensor/autocast.h"
#include "runner/core/tensor_fwd.h"

namespace components::generation {

/// New tokens of one slot, and those before them; of a model with an encoder those of the decoder.
struct Feed {
  std::int64_t slot = 0;
  std::int64_t first = 0;                ///< position of the first new one
  std::span<const std::int32_t> tokens;  ///< of the slot, from position 0 to the last new one
};

/// Runs a model over the new tokens of slots.
class Passes {
 public:
  virtual ~Passes() = default;
  /// What follows each feed: logits [feeds, V], float32 on the CPU.
  virtual at::Tensor run(std::span<const Feed> feeds) = 0;
  /// Of a model with an encoder: computes what the decoder of a slot looks at.
  virtual void encode(std::int64_t slot, std::span<const std::int32_t> source) = 0;
  /// Makes room for that number of positions in each slot.
  virtual void reserve(std::int64_t positions) = 0;
  /// These positions of slot `to` become those of the segment's slot, and its source that one's.
  virtual void copy(const part::Segment& from, std::int64_t to) = 0;
};

/// With a cache of `slots` sequences of `positions` each.
std::unique_ptr<Passes> cached_passes(const model::Model& model, std::int64_t slots, std::int64_t positions,
                                      const AutocastOptions& autocast);

/// Each token by a forward pass over the text before it, of which the last `positions` count (0: all).
std::unique_ptr<Passes> whole_passes(const model::Model& model, std::int64_t positions,
                                     const AutocastOptions& autocast);

}  // namespace components::generation
