#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "components/part/attention.h"
#include "components/part/cross_attention.h"

namespace components::part {

/// Positions of one sequence, [first, first + count). In a pass the new ones; those before are in the cache.
struct Segment {
  std::int64_t slot = 0, first = 0, count = 0;
  std::int64_t end() const { return first + count; }
};

/// Keys and values of the positions that sequences have seen, so that a position is computed once. Each sequence has a
/// slot, whose positions begin at 0 whatever the others do.
class KvCache {
 public:
  /// Of one attention. On the CPU, for the kernels: k [slots, K, S, D] and v turned, [slots, K, D, S]; elsewhere both
  /// [slots, S, K, D].
  struct Layer {
    at::Tensor k, v;
    bool turned = false;
  };

  /// For `positions` of each sequence at most.
  KvCache(std::int64_t slots, std::int64_t positions);

  /// That of attention `number`, made at its first use with the type and device of `options`.
  Layer& layer(std::size_t number, const AttentionOptions& attention, const at::TensorOptions& options, bool turned);

  /// Makes room for that number of positions at least; those that are there stay.
  void reserve(std::int64_t positions);

  /// These positions of slot `to` become those of the segment's slot, and its source that one's.
  void copy(const Segment& from, std::int64_t to);

  /// Of a decoder that looks at an encoded source: keys and values of it, of cross attention `number`, computed once
  /// for the sequence in that slot. Slots with the same source share their memory.
  void set_source(std::int64_t slot, std::size_t number, Keys keys);
  const Keys& source(std::int64_t slot, std::size_t number) const;

  std::int64_t slots() const { return slots_; }
  std::int64_t positions() const { return positions_; }

 private:
  std::int64_t slots_, positions_, room_;  // room: positions and what fills up a step of the kernels
  std::vector<Layer> layers_;
  std::vector<std::vector<Keys>> sources_;  // by slot, then by cross attention
};

/// A pass over the new positions of several sequences: their rows follow each other in the activations, [N, ...], with
/// nothing between them. What is computed of a sequence does not depend on the others, nor on how its positions were
/// cut into passes, to the last bit on the CPU.
struct CachedPass {
  KvCache& cache;
  std::vector<Segment> segments;
  bool bf16 = false;  ///< products in bfloat16; those of bfloat16 weights always are

  std::int64_t rows() const;
};

}  // namespace components::part
